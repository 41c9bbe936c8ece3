"""The job on Spark, which leaves a file for each step as it comes to it.

python -m tests.faults.spark_job CONFIG STEPS_FOLDER
"""

import sys
from pathlib import Path

from compactor.adapters.spark.session import close_session
from compactor.core.crash_points import CrashPoint
from compactor.settings.settings import load_settings
from compactor.wiring import streaming
from compactor.wiring.app import App


def main(config: Path, steps: Path) -> int:
    def on_crash_point(step: CrashPoint, manifest_id: str) -> None:
        (steps / f"{manifest_id}-{step}").touch()

    try:
        report = streaming.service(App(load_settings(config, {}), on_crash_point=on_crash_point)).run(once=True)
    finally:
        close_session()
    return 3 if report.dead_lettered else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
