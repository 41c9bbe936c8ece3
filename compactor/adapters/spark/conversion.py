"""Converts in Spark's JVM: one read of JSON text, one select, one write of Parquet."""

import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, DataFrameReader, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark programmer knows
from pyspark.sql import types as T  # noqa: N812 - as with F
from pyspark.sql.types import StringType, StructField, StructType

from compactor.core.errors import SettingsError, StagingError
from compactor.core.text.json_numbers import NUMBER
from compactor.engines.engine import RowPlan
from compactor.engines.spark.names import hadoop_encoded, spark_path
from compactor.ledger.sizing import SIZE_TOLERANCE, Partitioning
from compactor.ndjson.inspection import BLANK
from compactor.schema.column_types import (
    DATE,
    EPOCH_PRECISION,
    EPOCHS,
    FIRST_MICROSECOND,
    FRACTION_DIGITS,
    LAST_MICROSECOND,
    LOCAL_TIMESTAMP,
    LOCAL_TIMESTAMP_WITHOUT_SECONDS,
    LONG,
    MINUTE_CHARACTERS,
    MONTHS,
    OBJECT_ID_DIGITS,
    TIMESTAMP,
    TIMESTAMP_WITHOUT_SECONDS,
    TIMESTAMPS_WITH_MONTHS,
    WRAPPED_DATE,
    WRAPPED_NUMBER,
    WRAPPED_OBJECT_ID,
    ColumnType,
    Epoch,
    plain_decimal,
)
from compactor.schema.field_ids import METADATA_IDS
from compactor.schema.schema import FILE_DATE, RESCUED_TYPE, Column, SchemaVersion, metadata_names

# Spark expressions that convert text to a column's type by the rules in `compactor.schema.column_types`.
#
# Each cast follows a pattern, because Spark's casts accept more than the rules: white space, `1d`, times without
# offset. No user-defined functions, so rows stay in the JVM.


# Almost all values match one of these patterns, whose values are always in range, so the result needs no check.
_FINITE = r"-?(?:0|[1-9][0-9]{0,199})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?"
_TIMESTAMP_OF_INNER_YEARS = rf"(?!0001|9999){TIMESTAMP}"
_WHOLE_SINCE_EPOCH: dict[Epoch, str] = {
    "seconds": "(?:0|-?[1-9][0-9]{0,9})",
    "milliseconds": "(?:0|-?[1-9][0-9]{0,12})",
    "microseconds": "(?:0|-?[1-9][0-9]{0,15})",
}


def typed(text: SparkColumn, column_type: ColumnType) -> SparkColumn:
    """The value of a text; null if the text is null or does not fit the type."""
    if column_type.kind == "string":
        return text
    if column_type.kind == "objectid":
        wrapped = F.when(text.startswith("{"), F.regexp_extract(text, rf"^{WRAPPED_OBJECT_ID}\z", 1))
        return F.lower(F.when(_is(text, OBJECT_ID_DIGITS), text).otherwise(F.nullif(wrapped, F.lit(""))))
    wrapped = F.when(text.startswith("{"), _uncommon(text, lambda each: _wrapped(each, column_type)))
    return F.coalesce(_plain(text, column_type), wrapped)


def _wrapped(text: SparkColumn, column_type: ColumnType) -> SparkColumn:
    """The value of a text in MongoDB's extended JSON."""
    number = F.regexp_extract(text, rf"^{WRAPPED_NUMBER}\z", 1)
    value = _uncommon(number, lambda each: _plain(each, column_type))
    if column_type.kind not in EPOCHS:
        return value
    instant = F.concat(*(F.regexp_extract(text, rf"^{WRAPPED_DATE}\z", group) for group in (1, 2, 3)))
    in_milliseconds = replace(column_type, epoch="milliseconds")
    return F.coalesce(value, _uncommon(instant, lambda each: _plain(each, in_milliseconds)))


def _plain(text: SparkColumn, column_type: ColumnType) -> SparkColumn:
    """The value of a text in one of the type's own spellings."""
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

    Spark generates Java code for every expression, and a method of more than 8,000 bytes runs many times slower. It
    generates none for a function applied to an array.
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
    unusual = [TIMESTAMP, TIMESTAMP_WITHOUT_SECONDS, *TIMESTAMPS_WITH_MONTHS]
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
    for pattern in TIMESTAMPS_WITH_MONTHS:
        moment = moment.when(_is(text, pattern), _in_iso_form(text, pattern).try_cast(T.TimestampType()))
    if epoch is not None:
        digits = FRACTION_DIGITS[epoch]
        micros = (_shifted_decimal(text, EPOCH_PRECISION, digits) * F.lit(10**digits)).cast(T.LongType())
        moment = moment.when(_is(text, NUMBER), F.timestamp_micros(micros))
    first, last = (F.timestamp_micros(F.lit(micros)) for micros in (FIRST_MICROSECOND, LAST_MICROSECOND))
    return F.when((moment >= first) & (moment <= last), moment)


def _in_iso_form(text: SparkColumn, pattern: str) -> SparkColumn:
    """A text that matches one of the `TIMESTAMPS_WITH_MONTHS`, in the form of ISO 8601."""
    day, month, year, time, offset = (F.regexp_extract(text, rf"^(?:{pattern})\z", group) for group in range(1, 6))
    numbers = F.create_map(*(F.lit(each) for number, name in enumerate(MONTHS, 1) for each in (name, f"{number:02}")))
    seconds = F.when(F.length(time) == len("hh:mm"), F.lit(":00")).otherwise(F.lit(""))
    zone = F.when(offset.startswith("+") | offset.startswith("-"), offset).otherwise(F.lit("Z"))
    return F.concat(year, F.lit("-"), numbers[month], F.lit("-"), F.lpad(day, 2, "0"), F.lit("T"), time, seconds, zone)


MAX_DISAGREEMENT_BYTES = 64 * 1024 * 1024
"""The most bytes of unparsable lines that the driver collects. More indicate a fault rather than odd lines."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPLITS_PER_FILE = round(1 / SIZE_TOLERANCE)  # file sizes differ by at most one split
_FIELD_ID = "parquet.field.id"  # the column metadata key from which Spark takes the id to write
_MISFITS = "misfits"
_MALFORMED = "MALFORMED_RECORD_IN_PARSING"  # Spark's error condition for a line that it cannot parse
_UNKNOWN_FILE = "a row of an unexpected file: "  # the message of a task that fails at such a row


@dataclass(frozen=True, slots=True)
class ConvertTask:
    """One conversion.

    Attributes:
        sources: URI to read -> URI of the input file: the same, or the original of a repaired copy.
        column_keys: The keys of columns that Spark reads; all other columns are null.
        overflow_keys: Keys without a column, which go to the rescued data.
        target: The folder to write to; ends with `/`.
    """

    plan: RowPlan
    sources: Mapping[str, str]
    column_keys: tuple[str, ...]
    overflow_keys: tuple[str, ...]
    target: str
    files: int
    partitioning: Partitioning


def convert(session: SparkSession, task: ConvertTask) -> int | None:
    """Convert a manifest's sources in one pass.

    Measured: failing at the first line that Spark cannot parse costs a fifth less than marking such lines. Observed
    rows leave Spark's generated code, so only misfits are observed; the caller counts rows by the footers.

    Returns:
        The number of values that do not fit their column's type; None if Spark could not parse some line, and the
            output
        must not be used.

    Raises:
        StagingError: Some row's source file is unknown.
    """
    keys = [*task.column_keys, *task.overflow_keys]
    columns = [f"c{number}" for number in range(len(keys))]
    raw = _reader(session, keys).option("mode", "FAILFAST").json(_paths(task.sources))
    # Keys may contain any character, or differ only in case: from here on columns are named by position.
    rows = raw.toDF(*columns)
    if "_source_file" in task.plan.metadata_columns:
        rows = _with_origins(rows, _origins(session, task.sources))
    observation = Observation()
    typed_positions = _typed_positions(task.plan.schema, keys)
    if typed_positions:
        rows = _with_values(rows, typed_positions).observe(observation, F.sum(_MISFITS).alias(_MISFITS))
    selected = _with_null_columns(rows.select(*_output_columns(task, keys)), task)
    partitioned = selected.coalesce(task.files) if _coalesces(task, raw) else selected.repartition(task.files)
    session.sparkContext.setLocalProperty("spark.job.description", f"convert {task.plan.manifest_id}")
    try:
        partitioned.write.option("compression", task.plan.compression).parquet(spark_path(task.target.rstrip("/")))
    except Exception as exc:
        message = str(exc)
        if _MALFORMED in message:
            return None
        _, marker, behind = message.partition(_UNKNOWN_FILE)
        if marker:
            file_name = "".join(behind.split(maxsplit=1)[:1])  # white space in it is escaped
            raise StagingError(f"manifest {task.plan.manifest_id}: Spark reports {marker}{file_name}") from exc
        raise
    return int(observation.get[_MISFITS] or 0) if typed_positions else 0


def _with_origins(rows: DataFrame, origins: DataFrame) -> DataFrame:
    """Add the input file to each row. Spark fails at a row whose file is unknown.

    `_metadata.file_path` gives the same names, but makes Spark copy every row again.
    """
    with_path = rows.withColumn("path", F.input_file_name()).join(F.broadcast(origins), "path", "left")
    unknown = F.raise_error(F.concat(F.lit(_UNKNOWN_FILE), F.col("path"))).cast("string")
    return with_path.withColumn("origin", F.coalesce("origin", unknown))


def _typed_positions(schema: SchemaVersion, keys: Sequence[str]) -> dict[int, Column]:
    by_key = {column.key: column for column in schema.columns if column.is_typed}
    return {number: by_key[key] for number, key in enumerate(keys) if key in by_key}


def _with_values(rows: DataFrame, typed_positions: Mapping[int, Column]) -> DataFrame:
    """Add the values of typed columns, and the number of texts that do not fit."""
    values = [typed(F.col(f"c{at}"), column.column_type).alias(f"v{at}") for at, column in typed_positions.items()]
    misfits = reduce(operator.add, [_is_misfit(at).cast("int") for at in typed_positions])
    # In two steps: Spark computes the values only once if they are named before they are used twice.
    return rows.select("*", *values).withColumn(_MISFITS, misfits)


def _is_misfit(at: int) -> SparkColumn:
    return F.col(f"c{at}").isNotNull() & F.col(f"v{at}").isNull()


def _coalesces(task: ConvertTask, raw: DataFrame) -> bool:
    """Whether to coalesce: if requested, and if files will be even although splits cannot be divided."""
    if task.partitioning != "coalesce" or task.files == 1:
        return task.partitioning == "coalesce"
    return raw.rdd.getNumPartitions() >= task.files * _SPLITS_PER_FILE


def corrupt_lines(
    session: SparkSession, manifest_id: str, sources: Mapping[str, str], keys: Sequence[str]
) -> dict[str, frozenset[bytes]]:
    """Find the lines that Spark's JSON reader cannot parse, by source, stripped of white space.

    Raises:
        StagingError: They exceed `MAX_DISAGREEMENT_BYTES`.
    """
    reader = _reader(session, keys, (_unused_name("corrupt", keys),)).option("mode", "PERMISSIVE")
    raw = reader.json(_paths(sources))
    with_path = raw.select("*", raw.metadataColumn("_metadata")["file_path"])
    rows = with_path.toDF(*[f"c{number}" for number in range(len(keys))], "corrupt", "path")
    by_path = {shown: source for source in sources for shown in _shown(source)}
    found: dict[str, set[bytes]] = {}
    total_bytes = 0
    # Select all columns: Spark refuses to return corrupt records without any other data column.
    for row in rows.where(F.col("corrupt").isNotNull()).toLocalIterator():
        line = row["corrupt"].encode().strip(BLANK)
        total_bytes += len(line)
        if total_bytes > MAX_DISAGREEMENT_BYTES:
            raise StagingError(
                f"manifest {manifest_id}: Spark cannot parse more than {MAX_DISAGREEMENT_BYTES} bytes of lines "
                "that are JSON"
            )
        found.setdefault(by_path[row["path"]], set()).add(line)
    return {source: frozenset(lines) for source, lines in found.items()}


def _reader(session: SparkSession, keys: Sequence[str], more_columns: Sequence[str] = ()) -> DataFrameReader:
    fields = [StructField(key, StringType()) for key in (*keys, *more_columns)]
    return (
        session.read.schema(StructType(fields))
        # Spark ignores a key with this name, so no key may have it.
        .option("columnNameOfCorruptRecord", _unused_name("corrupt", keys))
        .option("lineSep", "\n")
        # Spark's defaults would refuse long but valid values; inspection applies its own limits.
        .option("maxNestingDepth", 5_000)
        .option("maxNumLen", 2_000_000_000)
        .option("maxStringLen", 2_000_000_000)
        .option("ignoreCorruptFiles", False)
        .option("ignoreMissingFiles", False)
    )


def _unused_name(name: str, keys: Collection[str]) -> str:
    """The name with enough `'` appended to differ from all keys."""
    while name in keys:
        name += "'"
    return name


def _paths(sources: Mapping[str, str]) -> list[str]:
    return [*map(spark_path, sources)]


def _origins(session: SparkSession, sources: Mapping[str, str]) -> DataFrame:
    pairs = [(shown, origin) for source, origin in sources.items() for shown in _shown(source)]
    return session.createDataFrame(pairs, "path string, origin string")


def _shown(source: str) -> set[str]:
    """The names that Spark may give a source's file. Names of local files start with one slash or three."""
    encoded = hadoop_encoded(source)
    return {encoded, encoded.replace("file:///", "file:/", 1)}


def _output_columns(task: ConvertTask, keys: Sequence[str]) -> list[SparkColumn]:
    """All output columns except string columns that no line has."""
    position = {key: number for number, key in enumerate(keys)}
    metadata = {
        "_source_file": F.col("origin"),
        "_processed_at": F.timestamp_micros(F.lit((task.plan.processed_at - _EPOCH) // timedelta(microseconds=1))),
        "_manifest_id": F.lit(task.plan.manifest_id),
        FILE_DATE: F.lit(task.plan.date),
    }
    return [
        *[_named(metadata[name], name, METADATA_IDS[name]) for name in metadata_names(task.plan.metadata_columns)],
        *[
            _named(_output_column(task, each, position), each.name, each.field_id)
            for each in task.plan.schema.columns
            if each.key in position or each.type != "string"
        ],
    ]


def _with_null_columns(selected: DataFrame, task: ConvertTask) -> DataFrame:
    """Add those columns, in schema order.

    One call adds them all. One call each would take the driver longer than Spark takes for many rows.
    """
    found = {field.name: field for field in selected.schema}
    own = metadata_names(task.plan.metadata_columns)
    if len(found) == len(own) + len(task.plan.schema.columns):
        return selected
    nulls = {
        each.name: StructField(each.name, StringType(), metadata={_FIELD_ID: each.field_id} if each.field_id else None)
        for each in task.plan.schema.columns
    }
    return selected.to(StructType([found.get(name) or nulls[name] for name in (*own, *nulls)]))


def _named(column: SparkColumn, name: str, field_id: int) -> SparkColumn:
    return column.alias(name, metadata={_FIELD_ID: field_id}) if field_id else column.alias(name)


def _output_column(task: ConvertTask, column: Column, position: Mapping[str, int]) -> SparkColumn:
    if column.key is None:
        return _rescued(task, position)
    if column.key not in position:
        return typed(F.lit(None).cast(StringType()), column.column_type)
    return F.col(f"{'v' if column.is_typed else 'c'}{position[column.key]}")


def _rescued(task: ConvertTask, position: Mapping[str, int]) -> SparkColumn:
    """The rescued data: keys without a column, and texts that do not fit their column's type."""
    overflow = [(key, F.col(f"c{position[key]}")) for key in task.overflow_keys]
    misfits = [
        (column.key, F.when(_is_misfit(position[column.key]), F.col(f"c{position[column.key]}")))
        for column in task.plan.schema.columns
        if column.key is not None and column.key in position and column.is_typed
    ]
    # Misfits are rare: build no map for a row in which all values fit.
    rare = F.when(F.col(_MISFITS) > 0, _present(misfits)) if misfits else F.lit(None).cast(RESCUED_TYPE)
    if not overflow:
        return rare
    present = _present([*overflow, *misfits])
    return F.when(F.size(present) > 0, present)


def _present(pairs: Sequence[tuple[str, SparkColumn]]) -> SparkColumn:
    every = F.map_from_arrays(F.array(*[F.lit(key) for key, _ in pairs]), F.array(*[value for _, value in pairs]))
    return F.map_filter(every, lambda _, value: value.isNotNull())
