"""Shows how many values do not fit the type of their column."""

from collections.abc import Mapping

from compactor.cli.ui.output import Field
from compactor.core.text.formatting import by_name, count

_SHOWN_COLUMNS = 5


def misfit_fields(misfits: Mapping[str, int]) -> list[Field]:
    """The field of misfits, by column; none if all values fit."""
    values = sum(misfits.values())
    return [("misfits", [f"{count(values, 'value')} in _rescued_data", by_column(misfits)])] if values else []


def by_column(misfits: Mapping[str, int]) -> str:
    """The columns with most misfits, as in `12 price, 3 qty and 2 more columns`."""
    most = sorted(misfits, key=lambda name: (-misfits[name], name))[:_SHOWN_COLUMNS]
    more = len(misfits) - len(most)
    return by_name({name: misfits[name] for name in most}) + (f" and {count(more, 'more column')}" if more else "")
