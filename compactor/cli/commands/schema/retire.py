"""`compactor schema retire`: retires columns to make room for other keys."""

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_option
from compactor.cli.schema_versions import SchemaVersions, seen_versions, show_versions
from compactor.cli.ui.output import print_result
from compactor.wiring.app import App
from compactor.wiring.opening import job_registry


@click.command("schema retire")
@click.argument("columns", metavar="COLUMN...", nargs=-1, required=True)
@destination_option
@reporting(SchemaVersions)
def retire(invocation: Invocation, *, columns: tuple[str, ...], as_json: bool) -> None:
    """Retire columns to make room for other keys.

    Creates a schema version without these columns. Existing files keep them. Later values of their keys go to
    _rescued_data permanently. A running job adopts the version when it needs new columns.
    """
    app = App(invocation.settings())
    job_registry(app).retire(columns)
    print_result(seen_versions(app), show_versions, as_json=as_json)
