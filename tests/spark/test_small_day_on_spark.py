"""The example of the documents, with the engines as Spark drives them."""

from typing import Any

from tests.support.small_day import expected, input_files, shown_rejects, shown_rows


def test_the_small_day_is_as_expected(workspace: Any) -> None:
    """Rows and rejects are those that the example shows."""
    compacted = workspace.compact(input_files())
    assert shown_rows(compacted.rows) == expected("rows.ndjson")
    assert shown_rejects(compacted.rejects) == expected("rejects.ndjson")
