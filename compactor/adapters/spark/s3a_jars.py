"""Downloads the S3A jars, so that later starts need no Maven: `python -m compactor.adapters.spark.s3a_jars`.

Each jar must have its SHA-256 in `s3a_jars.sha256`, whatever its origin.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark

from compactor.adapters.spark.session import s3a_jars_folder
from compactor.settings.spark_conf import S3A_EXCLUDES, S3A_PACKAGES

CHECKSUMS = Path(__file__).with_name("s3a_jars.sha256")


def checksums() -> dict[str, str]:
    """The SHA-256 of each jar by name, in the format of `sha256sum`."""
    lines = CHECKSUMS.read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def jar_faults(folder: Path, expected: Mapping[str, str]) -> Iterator[str]:
    """Yield the faults of the jars in a folder: missing, unknown, or with a wrong checksum."""
    found = {path.name: path for path in folder.glob("*.jar")}
    for name in sorted(found.keys() | expected.keys()):
        if name not in expected:
            yield f"{name}: unknown jar"
        elif name not in found:
            yield f"{name}: missing"
        else:
            with found[name].open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != expected[name]:
                yield f"{name}: SHA-256 {digest}, expected {expected[name]}"


def fetch() -> int:
    """Copy the pinned packages' jars into this Python environment, unless it has them; return their number."""
    target, expected = s3a_jars_folder(), checksums()
    if not list(jar_faults(target, expected)):
        return len(expected)
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
        if faults := list(jar_faults(Path(work) / "jars", expected)):
            raise SystemExit("\n".join(["the S3A jars are not the tested ones", *faults]))
        shutil.rmtree(target, ignore_errors=True)  # jars of a different release
        target.mkdir(parents=True)
        for jar in jars:
            shutil.copy2(jar, target / jar.name)
    return len(jars)


if __name__ == "__main__":
    print(f"{fetch()} jars in {s3a_jars_folder()}")  # noqa: T201
