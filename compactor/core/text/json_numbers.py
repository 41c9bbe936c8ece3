"""Numbers by JSON's grammar: what their texts mean, without a limit to their digits. No I/O."""

import re

MAX_PRECISION = 38  # digits of a decimal: the limit of Spark and of Parquet readers
LONG_BITS = 63  # of a long, without the sign

NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""JSON's grammar for a number. The pattern means the same in Python and in Java if the whole text has to match."""

_NUMBER = re.compile(NUMBER)
_PARTS = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?)0*([0-9]*))?")
_EXPONENT_MAX_DIGITS = 10  # no text in memory has enough digits to compensate for a longer exponent


def significant(text: str) -> tuple[str, str, int] | None:
    """The parts of a number that do not depend on its spelling: `1.10` and `11e-1` have the same.

    Returns:
        Sign, digits without zeros at either end, and the power of ten that they are multiplied by. Zero has no digits.
        None for a text that is no number, or whose exponent no digits can make up for.
    """
    if not _NUMBER.fullmatch(text):
        return None
    parts = _PARTS.fullmatch(text)
    if parts is None:  # never: `_PARTS` matches every number
        return None
    sign, whole, fraction, exponent_sign, exponent = (part or "" for part in parts.groups())
    digits = whole + fraction
    stripped = digits.strip("0")
    if not stripped:
        return sign, "", 0
    if len(exponent) > _EXPONENT_MAX_DIGITS:
        return None
    trailing = len(digits) - len(digits.rstrip("0"))
    return sign, stripped, int(f"{exponent_sign}{exponent or 0}") - len(fraction) + trailing
