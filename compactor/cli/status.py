"""`compactor status`: how the job stands, on one screen."""

from typing import Any

import click
from rich.console import Console
from rich.table import Table

from compactor.app import App
from compactor.cli.failures import ExitCode
from compactor.cli.invocation import Invocation, body, json_option
from compactor.cli.output import by_name, count, duration, print_fields, print_json, shallow
from compactor.layout import Layout
from compactor.status import Status, read_status

SHOWN_COMMITS = 10


@click.command("status")
@json_option
@body
def status(invocation: Invocation, *, as_json: bool) -> ExitCode:
    """Show backlog, latest commits, dead letters and schema."""
    app = App(invocation.settings())
    found = read_status(app.store, app.layout, app.ledger, app.registry, app.runs, app.clock)
    if as_json:
        print_json(_document(found))
    else:
        _show(found, app.layout)
    return ExitCode.DONE


def _document(found: Status) -> dict[str, Any]:
    return {**shallow(found), "input_bytes_per_second": found.input_bytes_per_second}


def _show(found: Status, layout: Layout) -> None:
    waiting = count(found.waiting_manifests, "manifest")
    if found.waiting_manifests:
        waiting += f", the oldest for {duration(found.oldest_waiting_seconds)}"
    if found.pending_parts:
        waiting += f"\n{count(found.pending_parts, 'pending part')} of announced files"
    letters = f"{found.dead_letters:,}"
    if found.dead_letters:
        letters += f": {by_name(found.dead_letters_by_reason)}\n{layout.failed_folder}"
    schema = f"version {found.schema_version}, {count(found.columns, 'column')}"
    if found.newest_column:
        schema += f", the newest: {found.newest_column}"
    rate = f"{found.input_bytes_per_second / 1e6:,.1f} MB/s of input while at work" if found.recent else "not known yet"
    ratio = f"{found.ratio:.3f} Parquet bytes for each input byte" if found.ratio is not None else "not known yet"
    print_fields(
        [
            ("as of", f"{found.as_of:%Y-%m-%d %H:%M:%S} UTC"),
            (
                "running",
                "\n".join(f"{run.run_id}, since {run.started_at:%m-%d %H:%M:%S}" for run in found.runs) or "no job",
            ),
            ("waiting", waiting),
            ("begun, not done", count(found.open_manifests, "manifest")),
            ("dead letters", letters),
            ("schema", schema),
            ("rate", rate),
            ("size", ratio),
        ]
    )
    if found.recent:
        click.echo()
        Console(highlight=False).print(_commits(found))


def _commits(found: Status) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("latest commits", no_wrap=True)
    table.add_column("manifest", overflow="fold")
    for name in ("MB in", "MB out", "files", "rows", "rejects"):
        table.add_column(name, justify="right", no_wrap=True)
    for commit in reversed(found.recent[-SHOWN_COMMITS:]):
        table.add_row(
            f"{commit.decided_at:%m-%d %H:%M:%S}",
            commit.manifest_id,
            f"{commit.input_bytes / 1e6:,.1f}",
            f"{commit.output_bytes / 1e6:,.1f}",
            f"{commit.output_files:,}",
            f"{commit.records:,}",
            f"{commit.rejected_lines:,}",
        )
    return table
