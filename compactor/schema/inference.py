"""Chooses the type of a column from its profile: the narrowest one that keeps every value exactly. No I/O."""

from collections import Counter
from dataclasses import dataclass

from compactor.core.text.json_numbers import MAX_PRECISION
from compactor.schema.column_profile import ColumnProfile, Example
from compactor.schema.value_shapes import INSTANTS, NUMBERS, Shape

_KINDS: dict[Shape, str] = {
    "long": "number",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "date": "date",
    **dict.fromkeys(INSTANTS, "timestamp"),
    "local_time": "time without a zone",
    "text": "text",
    "nested": "object or array",
}
"""The kind of each shape, in words. Values of two kinds share no type but `string`."""

_TYPES = {"boolean": "boolean", "date": "date", "time without a zone": "timestamp_ntz"}
"""The type of each kind that has a single one."""


@dataclass(frozen=True, slots=True)
class Misfits:
    """Values that keep a column from the type of most of its values.

    Attributes:
        kind: What they are, in words.
        values: How many there are.
        example: The first of them.
    """

    kind: str
    values: int
    example: Example


@dataclass(frozen=True, slots=True)
class Inferred:
    """The type of a column.

    Attributes:
        type: As a schema file spells it. Every value of the profile fits it.
        narrower: The type of most values, if it is not `type`; else empty.
        misfits: The values of other kinds than most, and those that `narrower` would change.
    """

    type: str
    narrower: str = ""
    misfits: tuple[Misfits, ...] = ()


def infer(profile: ColumnProfile, *, has_nanoseconds: bool = True) -> Inferred:
    """The type of a column.

    A `long` holds plain integers. Other numbers are a `double` if each is the shortest spelling of one, and a decimal
    where digits would be lost. Instants are a `timestamp` if microseconds hold them, else a `timestamp_ns`. What none
    can hold, and values of different kinds, stay strings.

    Args:
        profile: Its values.
        has_nanoseconds: Whether it may be a `timestamp_ns`.
    """
    kinds = Counter[str]()
    for shape, count in profile.shapes.items():
        kinds[_KINDS[shape]] += count
    if not kinds:
        return Inferred("string")
    main = max(kinds, key=lambda kind: (kinds[kind], kind))
    others = tuple(_misfits(profile, kind, kinds[kind]) for kind in sorted(kinds) if kind != main)
    if main in {"text", "object or array"} or (others and kinds[main] * 2 <= kinds.total()):
        return Inferred("string", "", others)
    if main == "number":
        narrower, changed = _number_type(profile)
    elif main == "timestamp":
        narrower, changed = _instant_type(profile, has_nanoseconds=has_nanoseconds)
    else:
        narrower, changed = _TYPES[main], ()
    misfits = (*changed, *others)
    return Inferred("string", narrower, misfits) if misfits else Inferred(narrower)


def _misfits(profile: ColumnProfile, kind: str, count: int) -> Misfits:
    return Misfits(kind, count, min(found for shape, found in profile.examples.items() if _KINDS[shape] == kind))


def _instant_type(profile: ColumnProfile, *, has_nanoseconds: bool) -> tuple[str, tuple[Misfits, ...]]:
    """The type of the instants of a column, and those that it would change."""
    shapes, examples = profile.shapes, profile.examples
    if not shapes["nanoseconds"]:
        return "timestamp", ()
    if not has_nanoseconds:
        return "timestamp", (Misfits("finer than a microsecond", shapes["nanoseconds"], examples["nanoseconds"]),)
    if shapes["distant_timestamp"]:
        far = Misfits("outside the years 1678 to 2261", shapes["distant_timestamp"], examples["distant_timestamp"])
        return "timestamp_ns", (far,)
    return "timestamp_ns", ()


def _number_type(profile: ColumnProfile) -> tuple[str, tuple[Misfits, ...]]:
    """The type of the numbers of a column, and those that it would change."""
    digits, shapes = profile.digits, profile.shapes
    if not any(shapes[shape] for shape in NUMBERS if shape != "long"):
        return "long", ()
    if shapes["number"] and not digits.beyond_double:
        return "double", ()
    if not digits.beyond_decimal and digits.whole + digits.scale <= MAX_PRECISION:
        # Storage is the same for 19 to 38 digits, so that later values may have more of them.
        return f"decimal({MAX_PRECISION},{digits.scale})", ()
    if digits.first_beyond_double is not None:
        lost = Misfits("number beyond double", digits.beyond_double, digits.first_beyond_double)
        return "double", (lost,)
    return "long", (Misfits("integer beyond 64 bits", shapes["integer"], profile.examples["integer"]),)
