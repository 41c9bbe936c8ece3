"""What a store is asked to do in a scene, and what must have come of it."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from compactor.adapters.aws import S3Store
from tests.faults.fault_rules import Operation
from tests.faults.s3.cases import SEED
from tests.faults.s3_lake import uploads

MIB = 1024 * 1024
BIG = random.Random(SEED).randbytes(11 * MIB)
NAMES = [f"{number:02d}" for number in range(7)]


@dataclass
class Scene:
    """A store that goes through the proxy, one that does not, and a folder of their own."""

    spoiled: S3Store
    direct: S3Store
    root: str
    path: Path

    def bytes_at(self, name: str) -> bytes | None:
        """What is there, seen without faults."""
        uri = self.root + name
        return self.direct.read(uri) if self.direct.stat(uri) else None


def stat(scene: Scene) -> None:
    info = scene.spoiled.stat(scene.root + "here")
    assert info is not None
    assert info.size_bytes == 4


def stat_missing(scene: Scene) -> None:
    assert scene.spoiled.stat(scene.root + "never-was") is None


def read(scene: Scene) -> None:
    assert scene.spoiled.read(scene.root + "here") == b"here"
    assert scene.spoiled.read_range(scene.root + "here", 1, 2) == b"er"


def list_names(scene: Scene) -> None:
    listed = scene.spoiled.list(scene.root + "names/")
    assert [info.uri.rpartition("/")[2] for info in listed] == NAMES


def put(scene: Scene) -> None:
    scene.spoiled.put(scene.root + "here", b"new")
    assert scene.bytes_at("here") == b"new"


def create(scene: Scene) -> None:
    assert scene.spoiled.create(scene.root + "created", b"mine")
    assert scene.bytes_at("created") == b"mine"


def create_taken(scene: Scene) -> None:
    assert not scene.spoiled.create(scene.root + "here", b"mine")


def copy(scene: Scene) -> None:
    scene.spoiled.copy(scene.root + "here", scene.root + "copied")
    assert scene.bytes_at("copied") == b"here"


def copy_big(scene: Scene) -> None:
    scene.spoiled.copy(scene.root + "big", scene.root + "copied")
    assert scene.bytes_at("copied") == BIG


def upload_big(scene: Scene) -> None:
    scene.spoiled.upload(scene.root + "uploaded", scene.path)
    assert scene.bytes_at("uploaded") == BIG


def write(scene: Scene) -> None:
    with scene.spoiled.writer(scene.root + "here") as writer:
        writer.write(b"new")
    assert scene.bytes_at("here") == b"new"


def write_big(scene: Scene) -> None:
    with scene.spoiled.writer(scene.root + "written") as writer:
        for start in range(0, len(BIG), MIB):
            writer.write(BIG[start : start + MIB])
    assert scene.bytes_at("written") == BIG


def abandon(scene: Scene) -> None:
    class Abandoned(Exception): ...

    with suppress(Abandoned), scene.spoiled.writer(scene.root + "abandoned") as writer:
        writer.write(BIG)
        raise Abandoned
    assert not uploads(scene.direct, scene.root)
    assert scene.bytes_at("abandoned") is None


def delete(scene: Scene) -> None:
    scene.spoiled.delete([scene.root + "here", scene.root + "never-was"])
    assert scene.bytes_at("here") is None


def delete_unspeakable(scene: Scene) -> None:
    scene.spoiled.delete([scene.root + "\x01"])


ACTIONS: dict[Operation, tuple[Callable[[Scene], None], ...]] = {
    Operation.HEAD_OBJECT: (stat, copy),
    Operation.GET_OBJECT: (read, create_taken),
    Operation.LIST_OBJECTS: (list_names,),
    Operation.PUT_OBJECT: (put, write),
    Operation.CREATE_OBJECT: (create, create_taken),
    Operation.COPY_OBJECT: (copy,),
    Operation.DELETE_OBJECT: (delete_unspeakable,),
    Operation.DELETE_OBJECTS: (delete,),
    Operation.BUCKET: (stat_missing,),
    Operation.CREATE_UPLOAD: (upload_big, write_big, copy_big),
    Operation.UPLOAD_PART: (upload_big, write_big),
    Operation.COPY_PART: (copy_big,),
    Operation.COMPLETE_UPLOAD: (upload_big, write_big, copy_big),
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
"""All that may ever be seen in a place: whole objects, of somebody who meant it."""
