"""`compactor schema show`: shows schema versions and the columns added by each."""

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_argument
from compactor.cli.schema_versions import SchemaVersions, seen_versions, show_versions
from compactor.cli.ui.output import print_result
from compactor.wiring.app import App


@click.command("schema show")
@destination_argument
@reporting(SchemaVersions)
def show(invocation: Invocation, *, as_json: bool) -> None:
    """Show schema versions and the columns added by each.

    A column never changes its name or type. --json shows all details.
    """
    print_result(seen_versions(App(invocation.settings())), show_versions, as_json=as_json)
