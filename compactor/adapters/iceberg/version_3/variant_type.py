"""The type of variants, which pyiceberg lacks: a schema of Iceberg with it is written and read."""

from functools import wraps
from typing import Any, Final, Literal

from pydantic import Field
from pyiceberg.types import NestedField, PrimitiveType

VARIANT: Final = "variant"


class VariantType(PrimitiveType):
    """A value of semi-structured data. To pyiceberg it has no parts, and no bounds."""

    root: Literal["variant"] = Field(default=VARIANT)

    def minimum_format_version(self) -> Literal[3]:
        """The first version of the format that has it."""
        return 3


def teach_variants() -> None:
    """Have pyiceberg read the name of the type in a schema, from the first call on.

    It finds types by a chain of comparisons that has no place for another one; but all fields of a schema are made by
    this method, also by pydantic.
    """
    own = NestedField.__init__
    if getattr(own, "knows_variants", False):
        return

    @wraps(own)
    def init(self: NestedField, *args: Any, **values: Any) -> None:
        if values.get("type") == VARIANT:
            values["type"] = VariantType()
        own(self, *args, **values)

    init.knows_variants = True  # type: ignore[attr-defined]
    NestedField.__init__ = init  # type: ignore[method-assign]
