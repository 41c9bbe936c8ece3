"""Judges the tables of the output: whether that of the Glue Data Catalog has its columns, and whose Iceberg's is."""

from collections.abc import Callable, Mapping

from compactor.core.errors import AccessError, CompactorError, ExtraMissing, TryAgainError
from compactor.core.text.formatting import count
from compactor.ops.doctor.account_checks import DEPLOY
from compactor.ops.doctor.findings import Absent, Account, Finding, fault, ok, warning
from compactor.schema.catalog import drift, table_columns
from compactor.table.listed import ListedTable

_SHOWN = 3
_PUBLISH = "compactor schema publish"
_MOVES: Mapping[type[CompactorError], str] = {
    ExtraMissing: "install it in the Python of the compactor, and of the job",
    AccessError: "allow reading and committing to the table, or correct the credentials of the catalog",
    TryAgainError: "correct table.uri, or make the catalog answer",
}
"""What helps where the catalog cannot be used. Other errors say themselves what was expected."""


def table(account: Account, name: str, wanted: Callable[[], Mapping[str, str]]) -> Finding:
    """Whether the table `database.table` exists, projects its dates, and has the wanted columns."""
    database, _, own_name = name.partition(".")
    found = account.describe("glue", "get_table", DatabaseName=database, Name=own_name)
    if found is Absent.MISSING:
        return fault(f"{name} does not exist", f"{DEPLOY}, or correct schema.table")
    if isinstance(found, Absent):
        return warning(f"{name}: not allowed to describe it", "allow glue:GetTable, or check with other credentials")
    described = found["Table"]
    differs = drift(table_columns(described), wanted())
    if differs.other_types:
        column, (has, expected) = next(iter(differs.other_types.items()))
        shown = f"{name}: {count(len(differs.other_types), 'column')} of another type, such as {column}"
        return fault(f"{shown}: {has}, expected {expected}", "correct the types in the catalog")
    if differs.missing:
        names = ", ".join([*differs.missing][:_SHOWN])
        return warning(f"{name} lacks {count(len(differs.missing), 'column')}, such as {names}", _PUBLISH)
    if described.get("Parameters", {}).get("projection.enabled", "").lower() != "true":
        return warning(f"{name}: partition projection is off, so that new dates are not found", DEPLOY)
    return ok(f"{name} has the columns of the output")


def iceberg_table(listed: ListedTable, owner: str) -> Finding:
    """Whether the catalog of a table of Iceberg answers, and the table is of this state, or is not there yet.

    Args:
        listed: The table.
        owner: How the table names the state that it is of.
    """
    try:
        head = listed.catalog().head()
    except CompactorError as exc:
        text, _, expected = str(exc).partition(" -> ")
        moves = (move for kind, move in _MOVES.items() if isinstance(exc, kind))
        return fault(text, next(moves, expected or "correct the section [table] of the settings"))
    if head is None:
        return ok(f"{listed.name}: the catalog answers; the first commit makes the table")
    if head.owner != owner:
        return fault(
            f"{listed.name} is of the state {head.owner}, expected {owner}", "name another table in table.name"
        )
    return ok(f"{listed.name}: up to batch {head.fence:,}")
