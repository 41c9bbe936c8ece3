"""A table's partitions in Iceberg's terms: by the files' date, then by the partitions in their commits."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import BucketTransform, DayTransform, HourTransform, IdentityTransform, Transform

from compactor.adapters.iceberg.schemas import PARTITIONS
from compactor.core.errors import OperatorError
from compactor.core.partitions import PartitionValues
from compactor.schema.column_types import parse_type, value_of
from compactor.schema.schema import FILE_DATE
from compactor.table.catalog import FilePartition, TableFile

SPEC = "compactor.partition-spec"
"""The property with the id of the default specification set by the compactor; absent for the first."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_VALUE = object()

_Term = tuple[int, Transform[Any, Any], str]  # a field without its id: source, transform and name


@dataclass(slots=True)
class Specs:
    """A table's specifications, to which a change may add some.

    Files whose partition values the table cannot express, such as those from before a column had its type, are
    partitioned only by date: readers then search them for any value.

    Attributes:
        added: Specifications that the table lacks.
    """

    metadata: TableMetadata
    schema: Schema
    added: list[PartitionSpec] = field(default_factory=list)

    def __post_init__(self) -> None:
        spec, own = self.metadata.spec(), self.metadata.properties.get(SPEC)
        # guard: a table has the partitions that its files are entered with
        if spec.fields != PARTITIONS.fields and own != str(spec.spec_id):
            raise OperatorError(
                f"table at {self.metadata.location}: its partitions are not by {FILE_DATE} -> expected its "
                "original ones: set them again"
            )

    def of(self, file: TableFile) -> PartitionSpec:
        """A file's specification, added if missing."""
        wanted = [(each.field_id, _transform(each), each.name) for each in file.partition if self._can_tell(each)]
        if len(wanted) < len(file.partition):
            wanted = []
        for spec in (*self.metadata.specs().values(), *self.added):
            if spec.fields[:1] == PARTITIONS.fields and _terms(spec) == wanted:
                return spec
        spec = PartitionSpec(*PARTITIONS.fields, *self._new_fields(wanted), spec_id=self._next_id())
        self.added.append(spec)
        return spec

    def values_of(self, file: TableFile, spec: PartitionSpec) -> list[object]:
        """A file's values for its specification's fields after the date."""
        return [_value(each) for each in file.partition] if len(spec.fields) > 1 else []

    def _can_tell(self, each: FilePartition) -> bool:
        """Whether the table has the column, with a type that the transform supports."""
        known = {column.field_id: column.field_type for column in self.schema.fields}
        found = known.get(each.field_id)
        return found is not None and _transform(each).can_transform(found) and _value(each) is not _NO_VALUE

    def _next_id(self) -> int:
        return 1 + max(spec.spec_id for spec in (*self.metadata.specs().values(), *self.added))

    def _new_fields(self, wanted: Iterable[_Term]) -> Iterable[PartitionField]:
        """Yield fields with their ids from an earlier specification, or with new ids."""
        fields = [each for spec in (*self.metadata.specs().values(), *self.added) for each in spec.fields]
        known = {(each.source_id, str(each.transform), each.name): each.field_id for each in fields}
        last = max([self.metadata.last_partition_id or 0, *known.values()])
        for source_id, transform, name in wanted:
            number = known.get((source_id, str(transform), name))
            if number is None:
                number = last = last + 1
            yield PartitionField(source_id, number, transform, name)


def _terms(spec: PartitionSpec) -> list[_Term]:
    return [(each.source_id, each.transform, each.name) for each in spec.fields[1:]]


def _transform(each: FilePartition) -> Transform[Any, Any]:
    match each.transform:
        case "day":
            return DayTransform()
        case "hour":
            return HourTransform()
        case "bucket":
            return BucketTransform(each.buckets)
    return IdentityTransform()


def _value(each: FilePartition) -> object:  # noqa: PLR0911 - one for each transform and type
    """The value as stored in Iceberg; `_NO_VALUE` for a text that does not fit the type."""
    if each.value is None:
        return None
    match each.transform:
        case "day":
            return _days(date.fromisoformat(each.value))
        case "hour":
            day, _, hour = each.value.rpartition("-")
            return _days(date.fromisoformat(day)) * 24 + int(hour)
        case "bucket":
            return int(each.value)
    found = value_of(each.value, parse_type(each.type))
    if isinstance(found, datetime):
        return (found - _EPOCH) // timedelta(microseconds=1)
    if isinstance(found, date):
        return _days(found)
    return _NO_VALUE if found is None else found


def _days(day: date) -> int:
    return (day - _EPOCH.date()).days


def values_in(entry: DataFile, spec: PartitionSpec) -> PartitionValues | None:
    """A file's values after the date, spelled as in its commit; None for other types or other programs' files."""
    if spec.fields[:1] != PARTITIONS.fields:
        return None
    texts = [_text(each.transform, entry.partition[at]) for at, each in enumerate(spec.fields) if at]
    return None if _NO_VALUE in texts else tuple(text if isinstance(text, str) else None for text in texts)


def _text(transform: Transform[Any, Any], value: Any) -> object:
    if value is None:
        return None
    if isinstance(transform, DayTransform):
        return (_EPOCH + timedelta(days=value)).date().isoformat()
    if isinstance(transform, HourTransform):
        moment = _EPOCH + timedelta(hours=value)
        return f"{moment.date().isoformat()}-{moment.hour:02d}"
    if isinstance(transform, BucketTransform):
        return str(value)
    return value if isinstance(value, str) else _NO_VALUE
