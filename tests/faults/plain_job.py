"""The job and the planner with an engine in plain Python, which dies or stops at a step if it is told to.

python -m tests.faults.plain_job CONFIG [--plan PREFIX] [--die-at STEP | --stop-at STEP] [--visit N] [--only ID]
"""

import itertools
import os
import signal
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from compactor.app import App
from compactor.errors import CompactorError
from compactor.settings import load_settings
from compactor.steps import OnStep, Step
from tests.twins import ListSource, PlainEngine


def main(words: Sequence[str] | None = None) -> int:
    parser = ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("--plan", help="plan this folder instead of running the job")
    parser.add_argument("--die-at", type=Step, help="end by SIGKILL")
    parser.add_argument("--stop-at", type=Step, help="stop by SIGSTOP, until somebody sends SIGCONT")
    parser.add_argument("--visit", type=int, default=1, help="at which time that it comes there")
    parser.add_argument("--only", help="only at steps of this manifest")
    arguments = parser.parse_args(words)
    app = App(load_settings(arguments.config, {}), on_step=interruption(arguments))
    try:
        return plan(app, arguments.plan) if arguments.plan else run(app)
    except CompactorError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1


def interruption(arguments: Namespace) -> OnStep:
    """What happens to this process at its steps."""
    visits = itertools.count(1)

    def on_step(step: Step, manifest_id: str) -> None:
        if step not in {arguments.die_at, arguments.stop_at} or arguments.only not in {None, manifest_id}:
            return
        if next(visits) != arguments.visit:
            return
        if arguments.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        # Sent to this very thread, for it to stop before it does another thing, and all others with it.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    return on_step


def plan(app: App, prefix: str) -> int:
    app.planner.plan(prefix)
    return 0


def run(app: App) -> int:
    engine = PlainEngine(app.store, rows_per_file=50)
    report = app.service_on(engine, ListSource(app.store, app.layout.manifests_folder)).run(once=True)
    return 3 if report.dead_lettered else 0


if __name__ == "__main__":
    sys.exit(main())
