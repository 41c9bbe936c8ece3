"""The job with an engine in plain Python, so that it starts at once; it kills itself at a step if it is told to.

python -m tests.faults.plain_job CONFIG [--die-at STEP] [--only MANIFEST_ID]
"""

import os
import signal
import sys
from argparse import ArgumentParser
from pathlib import Path

from compactor.app import App
from compactor.errors import CompactorError
from compactor.settings import load_settings
from compactor.steps import Step
from tests.twins import ListSource, PlainEngine


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("--die-at", type=Step)
    parser.add_argument("--only")
    arguments = parser.parse_args()

    def on_step(step: Step, manifest_id: str) -> None:
        if step is arguments.die_at and arguments.only in {None, manifest_id}:
            os.kill(os.getpid(), signal.SIGKILL)

    app = App(load_settings(arguments.config, {}), on_step=on_step)
    engine = PlainEngine(app.store, rows_per_file=50)
    service = app.service_on(engine, ListSource(app.store, app.layout.manifests_folder))
    try:
        report = service.run(once=True)
    except CompactorError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    return 3 if report.dead_lettered else 0


if __name__ == "__main__":
    sys.exit(main())
