"""Judges the table of the output in the Glue Data Catalog: whether it has the columns and the dates of the output."""

from collections.abc import Callable, Mapping

from compactor.core.text.formatting import count
from compactor.ops.doctor.account_checks import DEPLOY
from compactor.ops.doctor.findings import Finding, fault, ok, warning
from compactor.ops.doctor.ports import Absent, Account
from compactor.schema.catalog import drift, table_columns

_SHOWN = 3
_PUBLISH = "compactor schema publish"


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
