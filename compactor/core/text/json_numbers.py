"""Numbers by JSON's grammar: the meaning of their texts, with any number of digits. No I/O."""

import re

MAX_PRECISION = 38  # digits of a decimal: the limit in Spark and in Parquet readers
LONG_BITS = 63  # of a long, without the sign

NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
"""JSON's grammar for a number. For whole-text matches, the pattern means the same in Python and in Java."""

_NUMBER = re.compile(NUMBER)
_PARTS = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?)0*([0-9]*))?")
_EXPONENT_MAX_DIGITS = 10  # no text in memory has enough digits to compensate for a longer exponent


def significant(text: str) -> tuple[str, str, int] | None:
    """The parts of a number that do not depend on its spelling: `1.10` and `11e-1` give the same.

    Returns:
        Sign, digits without zeros at either end, and the power of ten of the last digit. Zero has no digits.
        None for a text that is not a number, or whose exponent no digits can compensate.
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
