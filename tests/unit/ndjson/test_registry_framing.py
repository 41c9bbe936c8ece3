"""Values that the serializers of schema registries wrote are told by their first bytes."""

import pytest

from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError
from compactor.ndjson.files.rejects import RejectSpool
from compactor.ndjson.files.scratch import Scratch
from compactor.ndjson.kinds.binary_kinds import registry_kind
from compactor.ndjson.lines import Reject, RejectLimits

UUID = bytes(range(16))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\0\0\0\x01\0data", "values of a schema registry (magic byte 0, schema 256)"),
        (b"\0\0\0\0\rdata", "values of a schema registry (magic byte 0)"),  # a line feed stood there, perhaps
        (b"\x03\0" + UUID, "values of the AWS Glue Schema Registry (magic byte 3)"),
        (b"\x03\x05" + UUID + b"data", "values of the AWS Glue Schema Registry (magic byte 3)"),
        (b"\x03\x01" + UUID, None),
        (b"\x03\0" + UUID[1:], None),
        (b"\0\0\0\x01", None),
        (b"\0" * 64, None),
        (b'{"id": 1}', None),
        (b"", None),
    ],
)
def test_kinds(value: bytes, expected: str | None) -> None:
    kind = registry_kind(value)
    assert (kind and kind.name) == expected


def test_too_many_rejects_say_how_the_first_one_looks() -> None:
    limits = RejectLimits(max_lines=1, max_bytes=1_000, on_excess="quarantine")
    spool = RejectSpool("m-1", "kafka://main/events/0?from=0&to=9", limits, Scratch(1_000))
    spool.add(Reject(1, 0, "invalid_json", b"\0\0\0\0\x07data"))
    with pytest.raises(
        FileError, match=r"the first looks like values of a schema registry \(magic byte 0, schema 7\)"
    ) as exc:
        spool.add(Reject(2, 9, "invalid_json", b"no json"))
    assert exc.value.status is FileStatus.TOO_MANY_REJECTS
