"""`compactor schema retire`: retires columns, so that other keys can take their places."""

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
    """Retire columns, so that other keys can take their places.

    Makes a schema version without these columns. Files that have them stay as they are. Later values of their keys go
    to _rescued_data for good. A running job takes the version when it needs new columns.
    """
    app = App(invocation.settings())
    job_registry(app).retire(columns)
    print_result(seen_versions(app), show_versions, as_json=as_json)
