"""Reads landed objects."""

from compactor.core.ports import ObjectStore
from compactor.ndjson.codecs import decode


def landed_lines(store: ObjectStore, uri: str) -> list[bytes]:
    """The lines of a landed object."""
    return b"".join(decode("zstd", [store.read(uri)])).split(b"\n")[:-1]
