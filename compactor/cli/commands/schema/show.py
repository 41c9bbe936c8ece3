"""`compactor schema show`: shows the schema versions, and the columns that each added."""

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
    """Show the schema versions, and the columns that each added.

    A column never changes its name or type. --json shows what the text form leaves out.
    """
    print_result(seen_versions(App(invocation.settings())), show_versions, as_json=as_json)
