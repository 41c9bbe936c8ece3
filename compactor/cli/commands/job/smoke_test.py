"""`compactor job smoke-test`: sends a test file through a deployment, and follows it to its row."""

import secrets
from dataclasses import dataclass

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import FiniteRange, destination_argument
from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.output import print_json
from compactor.cli.ui.terminal import echo
from compactor.core.text.safe_text import quoted
from compactor.ops.canary import HOPS, POLL_SECONDS, CanaryChecker, CanaryStopped, Hop, Progress, next_move
from compactor.wiring.app import App
from compactor.wiring.operating import canary_checker

CLEANING_LOOKS = 30


@dataclass(frozen=True, slots=True)
class SmokeTest:
    """The result of a smoke test."""

    uri: str  # the file
    manifest_id: str  # its manifest; empty if none lists it
    hops: list[Hop]  # hops that it made, in order
    has_row: bool  # whether the output has exactly its row
    is_cleaned: bool  # whether everything was removed
    leftovers: list[str]  # files of earlier checks that were removed
    message: str  # why it did not become a row; empty if it did


@click.command("job smoke-test")
@destination_argument
@click.option(
    "--timeout",
    "timeout_seconds",
    type=FiniteRange(min=1),
    default=1200,
    show_default=True,
    metavar="SECONDS",
    help="Give up after SECONDS.",
)
@reporting(SmokeTest)
def smoke_test(invocation: Invocation, *, timeout_seconds: float, as_json: bool) -> ExitCode:
    """Send a test file through a deployment, and follow it to its row.

    Writes a one-line file to compactor-check/ in the input, follows it through notification, builder, manifest and job
    to its row, prints the time of each hop, and removes all traces. The file has the date 2000-01-01 and a key that
    adds no column. DST may be a settings file, such as config/dev.toml.

    Exit codes: 1 if the file did not become a row in time.
    """
    settings = invocation.settings()
    checker = canary_checker(App(settings))
    canary_id = secrets.token_hex(4)
    leftovers = list(checker.leftovers())
    hops: list[Hop] = []
    uri = checker.send(canary_id)
    try:
        progress = _followed(checker, uri, timeout_seconds, hops, quiet=as_json)
        has_row, is_cleaned = _ended(checker, canary_id, progress, hops, quiet=as_json)
        stopped, move = "", ""
    except CanaryStopped as exc:
        has_row = is_cleaned = False
        progress, stopped = exc.progress, str(exc)
        move = next_move(exc.progress, settings.control.job_name)
    if as_json:
        print_json(SmokeTest(uri, progress.manifest_id, hops, has_row, is_cleaned, leftovers, stopped))
    if stopped:
        say(f"{uri}: {stopped}")
        say_next(f"{move}; a check an hour after the file's commit removes it, else remove it manually")
    elif not has_row:
        say(f"{uri}: expected exactly its row in the output of manifest {progress.manifest_id}")
        say_next(f"compactor trace {quoted(progress.manifest_id)}")
    elif not is_cleaned:
        say(f"{uri}: not removed, as its manifest is open or has other files; the next check retries")
    return ExitCode.DONE if has_row else ExitCode.FAILED


def _followed(checker: CanaryChecker, uri: str, timeout_seconds: float, hops: list[Hop], *, quiet: bool) -> Progress:
    last = Progress("unknown")
    for hop, last in checker.follow(uri, timeout_seconds):  # noqa: B007 - the last one counts
        _note(hop, hops, quiet=quiet)
    return last


def _ended(
    checker: CanaryChecker, canary_id: str, progress: Progress, hops: list[Hop], *, quiet: bool
) -> tuple[bool, bool]:
    """Check the row, and clean up; returns whether each was done."""
    if not checker.has_row(canary_id, progress.key):
        return False, False
    last = hops[-1].seconds
    began = checker.seconds()
    _note(Hop("row", last), hops, quiet=quiet)
    for _ in range(CLEANING_LOOKS):
        if checker.clean(progress.key):
            _note(Hop("cleaned", last + checker.seconds() - began), hops, quiet=quiet)
            return True, True
        checker.pause(POLL_SECONDS)
    return True, False


def _note(hop: Hop, hops: list[Hop], *, quiet: bool) -> None:
    hops.append(hop)
    if not quiet:
        echo(f"{hop.seconds:7.1f} s  {HOPS[hop.name]}")
