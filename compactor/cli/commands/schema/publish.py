"""`compactor schema publish`: adds new columns to the table of the Glue Data Catalog."""

import click

from compactor.cli.invocation import Invocation, reporting
from compactor.cli.parameters import destination_argument
from compactor.cli.schema_versions import SHOWN_COLUMNS, printable
from compactor.cli.ui.failures import ExitCode, say, say_next
from compactor.cli.ui.output import print_fields, print_result
from compactor.cli.ui.terminal import echo
from compactor.core.text.formatting import count
from compactor.schema.catalog import Published
from compactor.wiring import operating
from compactor.wiring.app import App


@click.command("schema publish")
@destination_argument
@reporting(Published)
def publish(invocation: Invocation, *, as_json: bool) -> ExitCode:
    """Add new columns to the table of the Glue Data Catalog.

    Adds the columns of the latest schema version to schema.table, as the job does by itself. Never removes or changes
    columns.

    Exit codes: 3 if a column has a different type in the table.
    """
    done = operating.publish_columns(App(invocation.settings()))
    print_result(done, _show, as_json=as_json)
    if not done.other_types:
        return ExitCode.DONE
    say(f"{done.table}: {count(len(done.other_types), 'column')} with other types than the output")
    say_next("correct these types in the catalog; the compactor never changes a type")
    return ExitCode.NEEDS_OPERATOR


def _show(done: Published) -> None:
    has = f"{done.table} has the columns of schema version {done.version}"
    echo(f"{has}: {count(len(done.added), 'column')} added" if done.added else f"{has}; none to add")
    print_fields([(f"  {printable(name)}", "added") for name in done.added[:SHOWN_COLUMNS]])
    wrong = [
        (f"  {printable(each.column)}", f"{each.found} in the table, expected {each.expected}")
        for each in done.other_types[:SHOWN_COLUMNS]
    ]
    print_fields(wrong)
