"""Chains of landed shards: what `verify` finds in them."""

from collections import Counter
from typing import Any

from compactor.core.documents.changes import Commit, Why
from compactor.core.documents.landing import LandedLink
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Accepted, FileReport, FileStatus
from compactor.core.layout import digest
from compactor.ledger.landing.chains import LogChains, PartitionPlace
from compactor.ops.verify.landed import faults_of_landed
from compactor.upkeep.expiring import Expirer
from tests.support.memory_kinesis import STREAM
from tests.unit.sources.test_kinesis_planning import LAYOUT, Scene, scene


class CountingReads:
    """A store that counts how often each object is read."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.reads: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, uri: str) -> bytes:
        self.reads[uri] += 1
        data: bytes = self._store.read(uri)
        return data


def found(made: Scene) -> list[tuple[str, str]]:
    return [(each.expected, each.found) for each in faults_of_landed(made.planner().state)]


def taken_in(made: Scene) -> None:
    """Accept all manifests, as a job does, and remove them from their prefix."""
    for manifest in list(made.manifests()):
        made.planner().state.ledger.accept(
            Accepted(
                manifest_id=manifest.manifest_id,
                kind="manifest",
                date=manifest.date,
                digest=digest(manifest.to_json()),
                source_uri="",
                accepted_at=made.clock.now(),
                manifest=manifest,
            )
        )
        made.store.delete([LAYOUT.manifest(manifest.manifest_id)])


def chain_of(made: Scene) -> tuple[LogChains, PartitionPlace]:
    chains = LogChains(made.planner().state)
    [place] = chains.places(STREAM)
    return chains, place


def commit_of(made: Scene, manifest: Manifest, *reports: FileReport) -> None:
    """Decide a commit of a manifest, as a job does."""
    now = made.clock.now()
    made.planner().state.ledger.decide(
        Commit(
            manifest_id=manifest.manifest_id, date=manifest.date, attempt=1, run_id="r", engine="e", schema_version=1,
            outputs=[], rejects=[], files=[*reports], max_line_bytes=1, max_decompressed_bytes=1, started_at=now,
            decided_at=now,
        )
    )  # fmt: skip


def one_taken_in() -> tuple[Scene, Manifest, ManifestFile]:
    """A manifest of one landed object of two records, which a job has taken in."""
    made, _ = scene()
    made.put(2)
    made.plan()
    [manifest] = made.manifests()
    taken_in(made)
    [file] = manifest.files
    return made, manifest, file


def test_what_was_landed_adds_up() -> None:
    """While manifests wait, and once they were taken in."""
    made, [shard] = scene()
    made.put(20)
    made.kinesis.split(shard)
    made.put(20)
    made.plan()
    assert found(made) == []
    taken_in(made)
    assert found(made) == []


def test_a_manifest_that_is_gone() -> None:
    """No one would read its object."""
    made, _ = scene()
    made.put(2)
    made.plan()
    [manifest] = made.manifests()
    made.store.delete([LAYOUT.manifest(manifest.manifest_id), LAYOUT.accepted(manifest.manifest_id)])
    made.store.delete([info.uri for info in made.store.list("s3://lake/s/") if "/drafts/" in info.uri])
    assert found(made) == [(f"manifest {manifest.manifest_id} with it", "no such manifest")]


def test_an_object_in_no_manifest() -> None:
    """Its manifest has another version of it, or not the object at all."""
    made, _ = scene()
    made.put(2)
    made.plan()
    taken_in(made)
    chains, place = chain_of(made)
    [link] = chains.chain(place).links()
    other = link.model_copy(update={"after": link.last, "last": "99", "etag": "other"})
    chains.chain(place).create(other)
    assert found(made) == [("version 'other' in its manifest", "no such file")]


def test_links_that_do_not_follow_each_other() -> None:
    """A gap, records behind the end, and a chain without a beginning."""
    made, _ = scene()
    made.put(2)
    made.plan()
    chains, place = chain_of(made)
    now = made.clock.now()
    chains.chain(place).create(
        LandedLink(partition_id=place.partition_id, after="50", last="60", manifest_id="", arrived_at=now, closes=True)
    )
    chains.chain(place).create(
        LandedLink(partition_id=place.partition_id, after="60", last="61", manifest_id="", arrived_at=now)
    )
    assert found(made) == [
        ("records behind position 14", "some behind position 50"),
        ("no records behind its end", "some behind position 60"),
    ]
    [origin] = [info.uri for info in made.store.list(LAYOUT.logs_folder) if info.uri.endswith("origin.json")]
    made.store.delete([origin])
    assert found(made) == [("a record of where its chain begins", "none")]


def test_an_object_with_other_lines() -> None:
    """A job read fewer than were landed."""
    made, manifest, file = one_taken_in()
    report = FileReport(
        uri=file.uri, status=FileStatus.COMPACTED, size_bytes=1, etag=file.etag or "", codec="none", lines=1
    )
    commit_of(made, manifest, report)
    assert found(made) == [("2 landed lines", "1 lines")]


def test_each_record_is_read_once() -> None:
    """However many shards a manifest has objects of: the manifest, and its outcome once it has one."""
    made, _ = scene(20)
    for _ in range(9):
        made.put(300)
        made.plan()
    ids = [manifest.manifest_id for manifest in made.manifests()]
    taken_in(made)
    chains = LogChains(made.planner().state)
    linked = [link.manifest_id for place in chains.places(STREAM) for link in chains.chain(place).links()]
    assert len(linked) > len(set(linked)) > 70
    store = CountingReads(made.store)
    assert list(faults_of_landed(made.planner(store).state)) == []
    assert {store.reads[LAYOUT.accepted(each)] for each in ids} == {1}


def test_landed_records_of_an_expired_date_are_deleted() -> None:
    """Those that its commit compacted; `verify` misses none. Others may belong to a redrive that is not done."""
    made, manifest, file = one_taken_in()
    commit_of(made, manifest, FileReport(uri=file.uri, status=FileStatus.COMPACTED, lines=2, records=2))
    other = f"{file.uri.rpartition('/')[0]}/other"
    made.store.put(other, b"")
    rule = {manifest.manifest_id: 1}
    Expirer(state=made.planner().state).expire(Why.DATE, manifest.date, "n", "a rule", rule)
    assert [made.store.stat(uri) is not None for uri in (file.uri, other)] == [False, True]
    assert found(made) == []
