"""The section about the schema: which columns came, when, and from which file. HTML, no I/O."""

from compactor.core.formatting import count
from compactor.ops.report.figures import SHOWN_VERSIONS, SchemaChange
from compactor.ops.report.frame import in_both_sizes
from compactor.ops.report.markup import Markup, element, joined
from compactor.ops.report.parts import Table, beside, entries, folded_table, moment, prose, section
from compactor.ops.report.report import Report
from compactor.ops.report.time_charts import columns_chart


def schema(report: Report) -> Markup:
    """What columns came, when, and from where."""
    found = report.figures
    now = f"The latest version is {found.schema_version}, with {count(found.columns, 'column')}."
    if not found.schema_changes:
        return section("schema", "Schema", prose(f"No column came in this period. {now}"))
    added = sum(each.added_columns for each in found.schema_changes)
    changes = found.schema_changes
    came = f"{count(len(changes), 'schema version')} came, which"
    if len(changes) >= SHOWN_VERSIONS:
        came = f"The newest {count(len(changes), 'schema version')} of this period, which are all that is shown here,"
    words = f"{came} added {count(added, 'column')}. {now}"
    chart = in_both_sizes(
        lambda canvas: columns_chart(canvas, "Columns of the schema over time", words, found.period, changes)
    )
    rows = [
        (moment(each.created_at), each.manifest_id, f"{each.version:,}", f"{each.added_columns:,}", f"{each.columns:,}")
        for each in changes
    ]
    columns = ("when (UTC)", "manifest", "version", "added", "columns")
    table = Table("schema", "Schema versions of the period", columns, rows, words=2)
    items = entries([_change(each) for each in reversed(changes)], "versions")
    return section("schema", "Schema", beside(prose(words), chart, joined([items, folded_table(table)])))


def _change(change: SchemaChange) -> Markup:
    head = f"Version {change.version:,}, {moment(change.created_at)} UTC, {count(change.added_columns, 'column')} added"
    columns = []
    for each in change.added:
        source = (
            f" from {each.source_uri}" if each.source_uri else " from the schema file" if each.source_uri == "" else ""
        )
        columns.append(element("li", element("code", each.name), f" {each.type}{source}"))
    left = change.added_columns - len(change.added)
    if left:
        columns.append(element("li", f"and {left:,} more; `compactor schema --json` shows all"))
    return joined([head, element("ul", *columns)])
