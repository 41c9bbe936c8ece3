"""What the store that finds the right store promises."""

import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from compactor.adapters.local.store import LocalStore
from compactor.adapters.stores import StoreSpec
from compactor.core.errors import ObjectChanged, ObjectNotFound
from compactor.core.ports import ObjectStore
from tests.support.aws_stand_in import REGION


@pytest.fixture
def spec(aws_endpoint: str) -> StoreSpec:
    return StoreSpec(REGION, aws_endpoint)


@pytest.fixture
def store(spec: StoreSpec) -> ObjectStore:
    return spec.open()


def _read(spec: StoreSpec, uri: str) -> bytes:
    return spec.open().read(uri)


def _read_also_in_fork(spec: StoreSpec, uri: str) -> tuple[bytes, bytes]:
    read = spec.open().read(uri)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as processes:
        return read, processes.submit(_read, spec, uri).result()


def test_a_spec_travels_to_other_processes(spec: StoreSpec, bucket: str) -> None:
    """A spec comes out of pickling as it was, and opens the same objects elsewhere.

    A process that is forked from one that has the store open does, too. It is not forked from this one, which has
    libraries with threads of their own, for the tests of other modules.
    """
    assert pickle.loads(pickle.dumps(spec)) == spec  # noqa: S301 - what was pickled here
    spec.open().put(f"s3://{bucket}/a", b"1")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        assert processes.submit(_read_also_in_fork, spec, f"s3://{bucket}/a").result() == (b"1", b"1")


@pytest.mark.parametrize("data", [b"", b"0123456789" * 10], ids=["empty", "some"])
@pytest.mark.parametrize("chunk_bytes", [7, 10, 1000])
def test_copies_cross_from_one_store_to_the_other(
    store: ObjectStore, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, chunk_bytes: int
) -> None:
    """A copy from disk to S3, or back, arrives whole, whatever pieces it is made in."""
    monkeypatch.setattr("compactor.core.ports._COPIED_AT_ONCE_BYTES", chunk_bytes)
    on_disk, in_s3, back = f"file://{tmp_path}/a b", f"s3://{bucket}/c%20d", f"{tmp_path}/back/a"
    store.put(on_disk, data)
    store.copy(on_disk, in_s3)
    store.copy(in_s3, back)
    assert store.read(in_s3) == store.read(back) == data


def test_a_copy_of_nothing_is_not_found(store: ObjectStore, bucket: str, tmp_path: Path) -> None:
    """Crossing from one store to the other, a missing source leaves no target."""
    for source, target in [(f"{tmp_path}/a", f"s3://{bucket}/a"), (f"s3://{bucket}/a", f"{tmp_path}/a")]:
        with pytest.raises(ObjectNotFound, match="a"):
            store.copy(source, target)
        assert store.stat(target) is None


def test_deleting_takes_both_kinds(store: ObjectStore, bucket: str, tmp_path: Path) -> None:
    """One call may delete files and objects in S3, in any order."""
    uris = [f"{tmp_path}/x/a", f"s3://{bucket}/a", f"file://{tmp_path}/x/b", f"s3a://{bucket}/b", f"{tmp_path}/none"]
    for uri in uris[:4]:
        store.put(uri, b"")
    store.delete(iter(uris))
    assert [store.stat(uri) for uri in uris] == [None] * 5


def test_plain_folders_do_not_load_boto3(tmp_path: Path) -> None:
    """A run on plain folders never loads the libraries of AWS."""
    code = (
        "import sys; from compactor.adapters.stores import StoreSpec; "
        "StoreSpec().open().put(sys.argv[1], b''); sys.exit('boto3' in sys.modules or 'botocore' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=True, cwd=Path(__file__).parents[2])


def test_a_copy_is_of_one_version(
    store: ObjectStore, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that is replaced while it crosses from disk to S3 makes the copy fail, not a mixture of both."""
    source, target = f"{tmp_path}/a", f"s3://{bucket}/a"
    store.put(source, b"old" * 10)
    read_range = LocalStore.read_range

    def read_and_replace(self: LocalStore, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        data = read_range(self, uri, start, length, etag=etag)
        self.put(uri, b"new" * 10)
        return data

    monkeypatch.setattr("compactor.core.ports._COPIED_AT_ONCE_BYTES", 7)
    monkeypatch.setattr(LocalStore, "read_range", read_and_replace)
    with pytest.raises(ObjectChanged, match="expected version"):
        store.copy(source, target)
    assert store.stat(target) is None
