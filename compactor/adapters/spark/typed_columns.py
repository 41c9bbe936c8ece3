"""Spark expressions that convert text to a column's type by the rules of `compactor.schema.column_types`.

Each cast follows a pattern, because Spark's casts accept more than the rules: white space, `1d`, times without offset.
No user-defined functions, so rows stay in the JVM.
"""

import math
from collections.abc import Callable

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark programmer knows
from pyspark.sql import types as T  # noqa: N812 - as with F

from compactor.core.errors import SettingsError
from compactor.core.text.json_numbers import NUMBER
from compactor.schema.column_types import (
    DATE,
    EPOCH_PRECISION,
    FIRST_MICROSECOND,
    FRACTION_DIGITS,
    LAST_MICROSECOND,
    LOCAL_TIMESTAMP,
    LOCAL_TIMESTAMP_WITHOUT_SECONDS,
    LONG,
    MINUTE_CHARACTERS,
    TIMESTAMP,
    TIMESTAMP_WITHOUT_SECONDS,
    ColumnType,
    Epoch,
    plain_decimal,
)

# Nearly all values match one of these patterns, whose values are always in range, so the result needs no check.
_FINITE = r"-?(?:0|[1-9][0-9]{0,199})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?"
_TIMESTAMP_OF_INNER_YEARS = rf"(?!0001|9999){TIMESTAMP}"
_WHOLE_SINCE_EPOCH: dict[Epoch, str] = {
    "seconds": "(?:0|-?[1-9][0-9]{0,9})",
    "milliseconds": "(?:0|-?[1-9][0-9]{0,12})",
}


def typed(text: SparkColumn, column_type: ColumnType) -> SparkColumn:
    """The value of a text; null if the text is null or does not fit the type."""
    match column_type.kind:
        case "long" | "date" as kind:
            pattern, result = (LONG, T.LongType()) if kind == "long" else (DATE, T.DateType())
            return F.when(_is(text, pattern), text.try_cast(result))
        case "boolean":
            return F.when(text == "true", F.lit(True)).when(text == "false", F.lit(False))
        case "double":
            return F.when(_is(text, _FINITE), text.try_cast(T.DoubleType())).when(
                _is(text, NUMBER), _uncommon(text, _double)
            )
        case "decimal":
            return _decimal(text, column_type.precision, column_type.scale)
        case "timestamp" | "timestamp_ntz":
            return _timestamp(text, column_type.epoch) if column_type.kind == "timestamp" else _local_timestamp(text)
        case "timestamp_ns":
            raise SettingsError(["schema.file: type timestamp_ns -> expected the native engine: Spark has none"])
    return text


def _is(text: SparkColumn, pattern: str) -> SparkColumn:
    return text.rlike(rf"^(?:{pattern})\z")  # not $, which also matches before a final line feed


def _uncommon(text: SparkColumn, rule: Callable[[SparkColumn], SparkColumn]) -> SparkColumn:
    """Apply a rule for texts that few rows have.

    Spark generates Java code for every expression, and a method of more than 8,000 bytes runs many times slower. For a
    function applied to an array it generates none.
    """
    return F.transform(F.array(text), rule)[0]


def _double(text: SparkColumn) -> SparkColumn:
    number = text.try_cast(T.DoubleType())
    return F.when(F.abs(number) < math.inf, number)


def _decimal(text: SparkColumn, precision: int, scale: int) -> SparkColumn:
    exact = F.when(_is(text, plain_decimal(precision, scale)), text.try_cast(T.DecimalType(precision, scale)))
    return exact.when(_is(text, NUMBER), _uncommon(text, lambda each: _shifted_decimal(each, precision, scale)))


def _shifted_decimal(text: SparkColumn, precision: int, scale: int) -> SparkColumn:
    """The value of any number, from its significant digits and their exponent.

    Spark's cast would round, and would take forever for 1e-99999999.
    """
    digits = F.regexp_replace(F.regexp_replace(text, "[eE].*", ""), "[-.]", "")
    fraction_digits = F.length(F.regexp_extract(text, r"\.([0-9]+)", 1))
    exponent = F.regexp_extract(text, r"[eE]([+-]?[0-9]+)\z", 1)
    exponent = F.when(exponent == "", F.lit(0)).otherwise(exponent.try_cast(T.IntegerType()))
    without_zeros = F.rtrim(digits, F.lit("0"))
    significant = F.ltrim(without_zeros, F.lit("0"))
    shift = exponent.cast(T.LongType()) - fraction_digits + F.length(digits) - F.length(without_zeros)
    fits = (shift >= -scale) & (F.length(significant) + shift <= precision - scale)
    sign = F.when(text.startswith("-"), F.lit("-")).otherwise(F.lit(""))
    written = F.concat(sign, significant, F.lit("e"), shift.cast(T.StringType()))
    decimal = T.DecimalType(precision, scale)
    return F.when(significant == "", F.lit(0).cast(decimal)).when(fits, written.try_cast(decimal))


def _timestamp(text: SparkColumn, epoch: Epoch | None) -> SparkColumn:
    moment = F.when(_is(text, _TIMESTAMP_OF_INNER_YEARS), text.try_cast(T.TimestampType()))
    unusual = [TIMESTAMP, TIMESTAMP_WITHOUT_SECONDS]
    if epoch is not None:
        unit_micros = 10 ** FRACTION_DIGITS[epoch]
        whole = F.timestamp_micros(text.try_cast(T.LongType()) * F.lit(unit_micros))
        moment = moment.when(_is(text, _WHOLE_SINCE_EPOCH[epoch]), whole)
        unusual.append(NUMBER)
    return moment.when(_is(text, "|".join(unusual)), _uncommon(text, lambda each: _any_timestamp(each, epoch)))


def _local_timestamp(text: SparkColumn) -> SparkColumn:
    to_minute = _is(text, LOCAL_TIMESTAMP_WITHOUT_SECONDS)
    with_seconds = F.when(to_minute, F.concat(text, F.lit(":00"))).otherwise(text)
    return F.when(to_minute | _is(text, LOCAL_TIMESTAMP), with_seconds.try_cast(T.TimestampNTZType()))


def _any_timestamp(text: SparkColumn, epoch: Epoch | None) -> SparkColumn:
    """The value of any timestamp; null if it is outside the years 0001 to 9999."""
    after_minute = text.substr(F.lit(MINUTE_CHARACTERS + 1), F.length(text))
    with_seconds = F.concat(F.substring(text, 1, MINUTE_CHARACTERS), F.lit(":00"), after_minute)
    moment = F.when(_is(text, TIMESTAMP), text.try_cast(T.TimestampType())).when(
        _is(text, TIMESTAMP_WITHOUT_SECONDS), with_seconds.try_cast(T.TimestampType())
    )
    if epoch is not None:
        digits = FRACTION_DIGITS[epoch]
        micros = (_shifted_decimal(text, EPOCH_PRECISION, digits) * F.lit(10**digits)).cast(T.LongType())
        moment = moment.when(_is(text, NUMBER), F.timestamp_micros(micros))
    first, last = (F.timestamp_micros(F.lit(micros)) for micros in (FIRST_MICROSECOND, LAST_MICROSECOND))
    return F.when((moment >= first) & (moment <= last), moment)
