"""Downloads the jars of S3A, so that later starts need no Maven: `python -m compactor.adapters.spark.s3a_jars`."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from compactor.adapters.spark.session import s3a_jars_folder
from compactor.settings.spark_conf import S3A_EXCLUDES, S3A_PACKAGES


def fetch() -> int:
    """Copy the jars of the pinned packages into this Python environment, unless it has jars; returns how many."""
    target = s3a_jars_folder()
    found = list(target.glob("*.jar"))
    if found:
        return len(found)
    with tempfile.TemporaryDirectory() as work:
        script = Path(work) / "nothing.py"
        script.write_text("")
        command = [
            str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
            *("--packages", ",".join(S3A_PACKAGES)),
            *("--exclude-packages", ",".join(S3A_EXCLUDES)),
            *("--conf", f"spark.jars.ivy={work}"),
            str(script),
        ]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        jars = list((Path(work) / "jars").glob("*.jar"))
        if finished.returncode or not jars:
            sys.stderr.write(finished.stderr[-4000:])
            raise SystemExit("cannot download the jars of S3A from Maven Central")
        target.mkdir(parents=True, exist_ok=True)
        for jar in jars:
            shutil.copy2(jar, target / jar.name)
    return len(jars)


if __name__ == "__main__":
    print(f"{fetch()} jars in {s3a_jars_folder()}")  # noqa: T201
