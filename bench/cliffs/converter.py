"""Compacts folders, one after the other, and prints what each has cost: `python -m bench.cliffs.converter ENGINE`.

Each line of its input names a folder, its output, and a schema file or none, as JSON; each line of its output answers
one. It stays, for starting Spark takes longer than most inputs.
"""

import json
import shutil
import sys
from pathlib import Path

from bench.protocol import cpu_seconds
from compactor import compact


def main() -> None:
    """Answer until the input ends."""
    engine = sys.argv[1]
    if engine == "spark":
        from compactor.adapters.spark.session import open_session  # noqa: PLC0415 - the native engine needs no Spark

        properties = {"spark.master": "local[2]", "spark.driver.memory": "4g", "spark.ui.enabled": "false"}
        open_session(properties, uses_s3=False)
    for line in sys.stdin:
        source, output, schema = json.loads(line)
        print(json.dumps(_answer(engine, source, Path(output), schema)), flush=True)


def _answer(engine: str, source: str, output: Path, schema: str | None) -> dict[str, object]:
    state = output.with_name(f"{output.name}-state")
    began = cpu_seconds()
    try:
        done = compact(source, output, state=state, engine="spark" if engine == "spark" else "native", schema=schema)
        used = cpu_seconds() - began
        failure = "" if done.complete else f"exit code {done.exit_code}: {'; '.join(done.problems)}"
        return {
            "cpu_seconds": used,
            "rows": done.rows,
            "rejected": done.rejected_lines,
            "output_bytes": done.output_bytes,
            "failure": failure[:1000],
        }
    except Exception as exc:  # noqa: BLE001 - the next shape may do better
        failure = f"{type(exc).__name__}: {exc}"[:1000]
        return {"cpu_seconds": cpu_seconds() - began, "rows": 0, "rejected": 0, "output_bytes": 0, "failure": failure}
    finally:
        for folder in (output, state):
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
