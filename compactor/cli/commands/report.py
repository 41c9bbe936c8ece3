"""`compactor report`: reports on a period, as one HTML page."""

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import FiniteRange, destination_argument, moment
from compactor.cli.priced_job import shape_of
from compactor.cli.ui.failures import ExitCode
from compactor.cli.ui.output import of_streams, print_fields, print_json, print_table
from compactor.cli.ui.terminal import echo, write_out
from compactor.cli.ui.words import expired_lines, log_lines, table_lines
from compactor.core.extras import need
from compactor.core.layout import is_s3
from compactor.core.text.formatting import size
from compactor.cost.prices import CLASSIC, DPU_PER_WORKER, GLUE_VERSIONS, PricedJob
from compactor.ops.report.period import Period
from compactor.ops.report.reader import read_figures
from compactor.ops.report.report import Report, cost_of, judge
from compactor.wiring import operating
from compactor.wiring.app import App, log_watch

DEFAULT_HOURS = 24.0
DEFAULT_OUT = "report.html"
STDOUT = "-"


@click.command("report", context_settings={"show_default": True})
@destination_argument
@click.option("--since", metavar="TIME", callback=moment, help="Start of the period (ISO 8601, default UTC).")
@click.option("--until", metavar="TIME", callback=moment, help="End of the period; default: now.")
@click.option(
    "--hours",
    type=FiniteRange(min=0, min_open=True, max=10 * 366 * 24),
    help=f"Length of the period until --until; default without --since: {DEFAULT_HOURS:g}.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True),
    help=f"Write the page to this file, or - for stdout; default: {DEFAULT_OUT}, or no page with --json.",
)
@click.option(
    "--samples/--no-samples",
    default=True,
    help="Show some rejected lines; the page is then readable only by you.",
)
@click.option("--worker-type", type=click.Choice(list(DPU_PER_WORKER)), help="Worker type, for the cost.")
@click.option("--workers", type=click.IntRange(min=2), help="Number of workers, including the driver.")
@click.option("--glue-version", type=click.Choice(GLUE_VERSIONS), default="6.0", help="Glue version.")
@reporting(Report, has_streams=True)
def report(
    invocation: Invocation,
    *,
    since: datetime | None,
    until: datetime | None,
    hours: float | None,
    out: str | None,
    samples: bool,
    worker_type: str | None,
    workers: int | None,
    glue_version: str,
    as_json: bool,
) -> ExitCode:
    """Write a report on a period as one self-contained HTML page.

    It shows throughput, times against the SLA, file sizes, rejects, dead letters, schema and cost, and a verdict in
    words. The command lists the complete ledger, and reads three records per manifest of the period. With several
    streams and no --stream, it prints one line per stream, and writes no page.

    Exit codes: 0 done; 3 done, but the period needs attention.
    """
    if as_json and out == STDOUT:
        raise click.UsageError("--json and --out - both write to stdout; expected one of them")
    job = PricedJob(worker_type or CLASSIC.worker_type, workers or CLASSIC.workers, glue_version)
    deployment, is_job_named = invocation.deployment(), bool(worker_type or workers)
    period = _period(App(deployment).clock.now(), since, until, hours)
    if deployment.streams and not out:
        made_of = {
            each.name: make_report(App(each), period, job, is_job_named=is_job_named, with_samples=False)
            for each in deployment.streams
        }
        return _report_streams(made_of, as_json=as_json)
    target = out or (None if as_json else DEFAULT_OUT)
    if target is not None:
        need("report")
    app = App(deployment.require_one_stream())
    made = make_report(app, period, job, is_job_named=is_job_named, with_samples=samples)
    if target is not None:
        from compactor.ops.report.page import page  # noqa: PLC0415 - templates and charts are slow to load

        _write(page(made), target, private=samples)
    if as_json:
        print_json(made)
    elif target != STDOUT:
        _show(made, str(target))
    return ExitCode.NEEDS_OPERATOR if made.needs_operator else ExitCode.DONE


def _report_streams(made: Mapping[str, Report], *, as_json: bool) -> ExitCode:
    if as_json:
        print_json(of_streams(made))
    else:
        show_reports(made)
    return ExitCode.NEEDS_OPERATOR if any(each.needs_operator for each in made.values()) else ExitCode.DONE


def show_reports(found: Mapping[str, Report]) -> None:
    """Print each stream's figures and verdict."""
    print_table(
        {
            "stream": lambda each: each[0],
            "verdict": lambda each: each[1].verdict.headline,
            "manifests": lambda each: f"{each[1].figures.totals.manifests:,}",
            "in": lambda each: size(each[1].figures.totals.input_bytes),
            "out": lambda each: size(each[1].figures.totals.output_bytes),
            "rows": lambda each: f"{each[1].figures.totals.rows:,}",
            "rejects": lambda each: f"{each[1].figures.totals.rejected_lines:,}",
        },
        found.items(),
        names=2,
    )
    for name, each in found.items():
        if each.verdict.points:
            echo(f"{name}: {each.verdict.points[0].text}")


def _period(now: datetime, since: datetime | None, until: datetime | None, hours: float | None) -> Period:
    """The period given by the options. It ends now at the latest, as later data is unknown."""
    if since is not None and hours is not None:
        raise click.UsageError("--since and --hours both set the start of the period; expected one of them")
    end = min(until or now, now)
    try:
        start = since if since is not None else end - timedelta(hours=hours or DEFAULT_HOURS)
    except OverflowError as exc:
        raise click.UsageError(f"--until {end.isoformat()}: so many hours earlier is before the first year") from exc
    if start >= end:
        raise click.UsageError(
            f"the period from {start.isoformat()} to {end.isoformat()} is empty; expected --since before --until "
            "and before now"
        )
    return Period(start, end)


def make_report(app: App, period: Period, job: PricedJob, *, is_job_named: bool, with_samples: bool) -> Report:
    """Read a period, judge it and price it for `job`, whose workers the user may have given."""
    settings = app.settings
    figures = read_figures(
        app.state,
        app.registry,
        period,
        target_file_bytes=settings.output.target_file_bytes,
        sla_seconds=settings.sla_seconds,
        with_samples=with_samples,
        table=operating.listed_table(app),
        logs=log_watch(app),
    )
    shape = shape_of(settings, None, figures.totals.output_bytes_per_input_byte)
    has_price = is_job_named or (is_s3(app.layout.state) and not settings.folder)
    return Report(
        as_of=app.clock.now(),
        state_folder=app.layout.state,
        suggest=settings.suggestions,
        sla_seconds=settings.sla_seconds,
        has_samples=with_samples,
        figures=figures,
        verdict=judge(figures, settings.sla_seconds, settings.suggestions),
        cost=cost_of(figures, job, shape, is_job_named=is_job_named) if has_price else None,
    )


def _write(text: str, target: str, *, private: bool) -> None:
    """Write the page. Only the owner may read a private one, whatever the file's mode was."""
    data = text.encode()
    if target == STDOUT:
        write_out(data, nl=False)
        return
    try:
        with open(target, "wb", opener=_open_private if private else _open_own) as file:
            file.write(data)
    except OSError as exc:
        raise click.UsageError(f"--out {target}: {exc.strerror}; expected a writable file") from exc


def _open_own(target: str, flags: int, mode: int = 0o666) -> int:
    """Open a file, but not through a link of a different user, as there may be in /tmp."""
    with suppress(FileNotFoundError):
        if os.lstat(target).st_uid in {os.geteuid(), 0}:
            return os.open(target, flags, mode)
    return os.open(target, flags | os.O_NOFOLLOW, mode)


def _open_private(target: str, flags: int) -> int:
    handle = _open_own(target, flags & ~os.O_TRUNC, 0o600)
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode):
        if status.st_uid != os.geteuid():  # who could read it, whatever its mode is
            os.close(handle)
            raise PermissionError(errno.EPERM, "belongs to a different user")
        os.fchmod(handle, 0o600)
        os.ftruncate(handle, 0)
    return handle


def _show(made: Report, target: str) -> None:
    period, points = made.figures.period, [point.text for point in made.verdict.points]
    expired, table, logs = made.figures.expired, made.figures.table, made.figures.logs
    print_fields(
        [
            ("report", target),
            ("period", f"{period.since:%Y-%m-%d %H:%M:%S} to {period.until:%Y-%m-%d %H:%M:%S} UTC"),
            ("verdict", made.verdict.headline),
            *([("because", points)] if points else []),
            *([("table", table_lines(table, made.as_of))] if table is not None else []),
            *([("logs", log_lines(logs))] if logs else []),
            *([("expired", expired_lines(expired))] if expired else []),
        ]
    )
