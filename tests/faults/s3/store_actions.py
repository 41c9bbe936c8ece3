"""What a store is asked to do in a tried, and what must have come of it."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from compactor.adapters.aws.s3.store import S3Store
from compactor.core.errors import ObjectChanged
from tests.faults.fault_rules import Operation
from tests.faults.s3.cases import SEED
from tests.faults.s3_lake import uploads

MIB = 1024 * 1024
BIG = random.Random(SEED).randbytes(11 * MIB)
NAMES = [f"{number:02d}" for number in range(7)]


@dataclass
class TroubledStore:
    """A store that goes through the proxy, one that does not, and a folder of their own."""

    spoiled: S3Store
    direct: S3Store
    root: str
    path: Path

    def bytes_at(self, name: str) -> bytes | None:
        """What is there, seen without faults."""
        uri = self.root + name
        return self.direct.read(uri) if self.direct.stat(uri) else None


def stat(tried: TroubledStore) -> None:
    info = tried.spoiled.stat(tried.root + "here")
    assert info is not None
    assert info.size_bytes == 4


def stat_missing(tried: TroubledStore) -> None:
    assert tried.spoiled.stat(tried.root + "never-was") is None


def read(tried: TroubledStore) -> None:
    assert tried.spoiled.read(tried.root + "here") == b"here"
    for _ in range(3):  # once by the client, which shows how, and then without it
        assert tried.spoiled.read_range(tried.root + "here", 1, 2) == b"er"


def list_names(tried: TroubledStore) -> None:
    listed = tried.spoiled.list(tried.root + "names/")
    assert [info.uri.rpartition("/")[2] for info in listed] == NAMES


def put(tried: TroubledStore) -> None:
    tried.spoiled.put(tried.root + "here", b"new")
    assert tried.bytes_at("here") == b"new"


def create(tried: TroubledStore) -> None:
    assert tried.spoiled.create(tried.root + "created", b"mine")
    assert tried.bytes_at("created") == b"mine"


def create_taken(tried: TroubledStore) -> None:
    assert not tried.spoiled.create(tried.root + "here", b"mine")


def copy(tried: TroubledStore) -> None:
    tried.spoiled.copy(tried.root + "here", tried.root + "copied")
    assert tried.bytes_at("copied") == b"here"


def copy_big(tried: TroubledStore) -> None:
    tried.spoiled.copy(tried.root + "big", tried.root + "copied")
    assert tried.bytes_at("copied") == BIG


def upload_big(tried: TroubledStore) -> None:
    tried.spoiled.upload(tried.root + "uploaded", tried.path)
    assert tried.bytes_at("uploaded") == BIG


def write(tried: TroubledStore) -> None:
    with tried.spoiled.writer(tried.root + "here") as writer:
        writer.write(b"new")
    assert tried.bytes_at("here") == b"new"


def write_big(tried: TroubledStore) -> None:
    with tried.spoiled.writer(tried.root + "written") as writer:
        for start in range(0, len(BIG), MIB):
            writer.write(BIG[start : start + MIB])
    assert tried.bytes_at("written") == BIG


def write_new(tried: TroubledStore) -> None:
    with tried.spoiled.new_writer(tried.root + "created") as writer:
        writer.write(b"mine")
    assert tried.bytes_at("created") == b"mine"


def write_new_big(tried: TroubledStore) -> None:
    with tried.spoiled.new_writer(tried.root + "written") as writer:
        for start in range(0, len(BIG), MIB):
            writer.write(BIG[start : start + MIB])
    assert tried.bytes_at("written") == BIG


def write_new_taken(tried: TroubledStore) -> None:
    with pytest.raises(ObjectChanged), tried.spoiled.new_writer(tried.root + "here") as writer:
        writer.write(b"mine")


def abandon(tried: TroubledStore) -> None:
    class Abandoned(Exception): ...

    with suppress(Abandoned), tried.spoiled.writer(tried.root + "abandoned") as writer:
        writer.write(BIG)
        raise Abandoned
    assert not uploads(tried.direct, tried.root)
    assert tried.bytes_at("abandoned") is None


def delete(tried: TroubledStore) -> None:
    tried.spoiled.delete([tried.root + "here", tried.root + "never-was"])
    assert tried.bytes_at("here") is None


def delete_unspeakable(tried: TroubledStore) -> None:
    tried.spoiled.delete([tried.root + "\x01"])


ACTIONS: dict[Operation, tuple[Callable[[TroubledStore], None], ...]] = {
    Operation.HEAD_OBJECT: (stat, copy),
    Operation.GET_OBJECT: (read, create_taken),
    Operation.LIST_OBJECTS: (list_names,),
    Operation.PUT_OBJECT: (put, write),
    Operation.CREATE_OBJECT: (create, create_taken, write_new, write_new_taken),
    Operation.COPY_OBJECT: (copy,),
    Operation.DELETE_OBJECT: (delete_unspeakable,),
    Operation.DELETE_OBJECTS: (delete,),
    Operation.BUCKET: (stat_missing,),
    Operation.CREATE_UPLOAD: (upload_big, write_big, write_new_big, copy_big),
    Operation.UPLOAD_PART: (upload_big, write_big, write_new_big),
    Operation.COPY_PART: (copy_big,),
    Operation.COMPLETE_UPLOAD: (upload_big, write_big, write_new_big, copy_big),
    Operation.ABORT_UPLOAD: (abandon,),
}
"""What a store does that comes to a call, with what must have come of it."""

CONTENTS = {
    "here": {b"here", b"new", None},
    "created": {b"mine", None},
    "copied": {b"here", BIG, None},
    "uploaded": {BIG, None},
    "written": {BIG, None},
    "abandoned": {None},
}
"""All that may ever be seen in a place: whole objects that an action wrote."""
