"""The demo: makes events, runs the same commands as a user, and compares the output with the input."""

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from compactor.core.errors import SettingsError
from compactor.core.layout import Layout
from compactor.core.text.formatting import count, duration, rate, size
from compactor.core.text.safe_text import quoted
from compactor.demo.commands import Commands, Echo, own_variables, work_folder
from compactor.demo.events import DAY, DayCounts
from compactor.demo.local_aws import CREDENTIALS, local_aws
from compactor.demo.outcome import Outcome, is_exact, read_outcome, rows_out
from compactor.demo.scene import BUCKETS, QUEUE, RAW_BUCKET, REGION, TABLE, Scene
from compactor.wiring.app import App
from compactor.wiring.settings_files import settings_at

DEEP_BYTES = 250_000_000
"""Up to this much input the demo compares every value, which takes about a minute."""

_SHOWN_SIZES = 6


def run_demo(total_bytes: int, folder: Path | None, echo: Echo, *, with_spark: bool = True) -> bool:
    """Run the demo; return whether the output matches the input exactly.

    Args:
        total_bytes: The size of the input.
        folder: Gets all files; new or empty. None for an AWS emulator, which leaves no files.
        echo: Prints.
        with_spark: Whether the job runs on Spark; else the native engine must be installed.

    Raises:
        SettingsError: The folder is not empty.
        CompactorError: A command failed.
    """
    with ExitStack() as stack:
        work = stack.enter_context(work_folder())
        scene, environment = _scene(stack, total_bytes, folder, echo)
        scene = replace(scene, with_spark=with_spark)
        config = scene.write_settings((folder or work) / "demo.toml")
        environment = {**environment, "COMPACTOR_CONFIG": config}
        app = App(settings_at(config, environment))
        echo(f"Making {size(total_bytes)} of events in {scene.raw} ...")
        made = scene.write_events(app.store)
        commands = Commands(environment, echo)
        run_seconds = _by_commands(scene, commands) if folder else _by_events(scene, environment, app, work, echo)
        commands.run("verify", *(["--deep"] if total_bytes <= DEEP_BYTES else []))
        commands.run("status")
        found = read_outcome(app)
        rows = _rows(made, found, run_seconds, app.layout)
        exact = is_exact(made, found, "Input and output", rows, echo)
        if folder is None:
            echo("", "The emulator keeps nothing; use `compactor demo --local DIR` to keep the files.")
        else:
            echo("", f"All files are in {folder}. Next, for example:", "")
            status = f"compactor --config {quoted(config)} status"
            echo(*(f"  {each}" for each in (*app.settings.reading_lines(), status)))
        return exact


def _scene(stack: ExitStack, total_bytes: int, folder: Path | None, echo: Echo) -> tuple[Scene, dict[str, str]]:
    """Prepare the places; returns them and the variables of the commands."""
    environment = own_variables()
    if folder is not None:
        if folder.exists() and any(folder.iterdir()):
            raise SettingsError([f"--local: {folder} is not empty -> expected a new or empty folder"])
        folder.mkdir(parents=True, exist_ok=True)
        home = folder.resolve()
        return Scene(f"{home}/raw/", f"{home}/lake/", total_bytes), environment
    echo("Starting a local AWS emulator ...")
    url = stack.enter_context(local_aws())
    os.environ.pop("AWS_PROFILE", None)  # this process ends with the demo
    os.environ.update(CREDENTIALS)
    from compactor.adapters.aws import local_setup  # noqa: PLC0415 - only for the emulator

    local_setup.make_buckets(BUCKETS, region=REGION, endpoint_url=url)
    local_setup.make_claims_table(TABLE, region=REGION, endpoint_url=url)
    queue_url = local_setup.make_event_queue(QUEUE, RAW_BUCKET, region=REGION, endpoint_url=url)
    environment.pop("AWS_PROFILE", None)
    environment |= {**CREDENTIALS, "AWS_REGION": REGION, "COMPACTOR_AWS__ENDPOINT_URL": url}
    return Scene(f"s3://{RAW_BUCKET}/", "s3://lake/", total_bytes, url, queue_url), environment


def _by_commands(scene: Scene, commands: Commands) -> float:
    """Plan and run; returns the seconds of `run`."""
    commands.run("plan", scene.raw)
    started = time.monotonic()
    commands.run("run", "--once")
    return time.monotonic() - started


def _by_events(scene: Scene, environment: Mapping[str, str], app: App, work: Path, echo: Echo) -> float:
    """Take the complete path from S3 events to metrics; returns the seconds of the job."""
    from compactor.demo.full_way import FullWay  # noqa: PLC0415 - needs boto3

    way = FullWay(scene, app, environment, work / "job.log", echo)
    seconds = way.go()
    way.show_metrics()
    return seconds


def _rows(made: DayCounts, found: Outcome, run_seconds: float, layout: Layout) -> list[tuple[str, str]]:
    sizes = ", ".join(map(size, sorted(found.output_sizes, reverse=True)[:_SHOWN_SIZES]))
    more = f" and {len(found.output_sizes) - _SHOWN_SIZES} more" if len(found.output_sizes) > _SHOWN_SIZES else ""
    return [
        ("input", f"{count(made.files, 'file')}, {size(made.stored_bytes)} ({size(made.decoded_bytes)} decompressed)"),
        ("lines", f"{made.lines:,}"),
        *rows_out(made, found),
        ("sizes", sizes + more),
        ("at work", f"{duration(found.work_seconds)}, {rate(made.decoded_bytes, found.work_seconds)}"),
        ("run", f"{duration(run_seconds)} including Spark's start, {rate(made.decoded_bytes, run_seconds)}"),
        ("Parquet in", layout.output_folder_of(DAY)),
        ("rejects in", layout.rejects_folder),
        ("ledger in", layout.ledger_folder),
    ]
