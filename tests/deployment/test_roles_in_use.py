"""Functions and job run against a store that records calls; their roles allow every call at its place."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from compactor.core.crash_points import CrashPoint, OnCrashPoint, PlanCrashPoint, ignore_crash_point
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.ports import ObjectInfo, ObjectStore, ObjectWriter
from compactor.sources.claiming import part_key
from compactor.sources.events.builder import Built
from compactor.wiring import planning
from compactor.wiring.app import App
from compactor.wiring.control import control_plane
from tests.deployment.permissions import allows, statements
from tests.deployment.resolving import Document, parameters_of, resources, template
from tests.support.harness import FLAWED, GOOD, DiedError, Harness, dying_at
from tests.support.memory_glue import MemoryGlue, MemoryNotifier
from tests.support.rebuilding import rebuild
from tests.support.s3_messages import SHAPES

MIB = 1024 * 1024
NOT_IN_THE_STORE = {"ReadSettings", "ReadArtefacts"}


class WatchedStore:
    """Records the permission and the place of each call."""

    def __init__(self, store: ObjectStore) -> None:
        self.used: set[tuple[str, str]] = set()
        self._store = store

    def stat(self, uri: str) -> ObjectInfo | None:
        self._note(uri, "s3:GetObject")
        return self._store.stat(uri)

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        self._note(uri, "s3:GetObject")
        return self._store.read(uri, etag=etag)

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        self._note(uri, "s3:GetObject")
        return self._store.read_range(uri, start, length, etag=etag)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        self._note(prefix.split("/", 3)[2], "s3:ListBucket")
        return self._store.list(prefix, start_after=start_after)

    def create(self, uri: str, data: bytes) -> bool:
        self._note(uri, "s3:PutObject", "s3:GetObject")  # it reads the object that exists
        return self._store.create(uri, data)

    def put(self, uri: str, data: bytes) -> None:
        self._note(uri, "s3:PutObject")
        self._store.put(uri, data)

    def upload(self, uri: str, path: Path) -> None:
        self._note(uri, "s3:PutObject", "s3:AbortMultipartUpload")
        self._store.upload(uri, path)

    def writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        self._note(uri, "s3:PutObject", "s3:AbortMultipartUpload")
        return self._store.writer(uri)

    def new_writer(self, uri: str) -> AbstractContextManager[ObjectWriter]:
        self._note(uri, "s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload")
        return self._store.new_writer(uri)

    def copy(self, source: str, target: str) -> None:
        self._note(source, "s3:GetObject")
        self._note(target, "s3:PutObject", "s3:AbortMultipartUpload")
        self._store.copy(source, target)

    def delete(self, uris: Iterable[str]) -> None:
        deleted = list(uris)
        for uri in deleted:
            self._note(uri, "s3:DeleteObject")
        self._store.delete(deleted)

    def delete_version(self, uri: str, etag: str) -> bool:
        self._note(uri, "s3:GetObject", "s3:DeleteObject")
        return self._store.delete_version(uri, etag)

    def _note(self, uri: str, *actions: str) -> None:
        self.used.update((action, f"arn:aws:s3:::{uri.removeprefix('s3://')}") for action in actions)


def role(name: str) -> Document:
    """A role for the places of a harness."""
    places = {
        "WorkBucketName": "lake",
        "StagingBucketName": "lake",
        "StagingPrefix": "state/staging",
        "LakeBucketName": "lake",
        "InputBucketName": "lake",
        "InputPrefix": "raw/",
        "OutputPrefix": "output",
    }
    return resources(template(), parameters_of("prod") | places)[name]


def check(name: str, store: WatchedStore, *, is_all_used: bool) -> None:
    found = role(name)
    refused = sorted(use for use in store.used if not allows(found, *use))
    assert refused == []
    if is_all_used:
        granted = {
            (action, pattern.rstrip("*"))
            for sid, actions, patterns, _ in statements(found)
            for action in actions
            for pattern in patterns
            if action.startswith("s3:") and sid not in NOT_IN_THE_STORE
        }
        unused = {
            (action, place)
            for action, place in granted
            if not any(action == done and arn.startswith(place) for done, arn in store.used)
        }
        assert unused == set()


@pytest.fixture
def harness() -> Harness:
    return Harness(root="s3://lake", builder={"target_manifest_bytes": 10 * MIB})


def components_of(harness: Harness, store: ObjectStore, on_crash_point: OnCrashPoint = ignore_crash_point) -> App:
    return App(harness.settings, on_crash_point=on_crash_point, clock=harness.clock, store=store, claims=harness.claims)


def messages(*names: str, size: int = MIB) -> dict[str, str]:
    return {name: SHAPES["s3"]("lake", f"raw/{name}", size, "e1") for name in names}


def overtaken_builder(harness: Harness, store: ObjectStore, late: dict[str, str]) -> Built:
    """The report of a builder that another one overtakes after its lease expired."""

    def overtake(point: PlanCrashPoint, _manifest_id: str) -> None:
        if point is PlanCrashPoint.CLAIMED:
            harness.clock.advance(301)
            planning.builder(components_of(harness, harness.store)).build(dict([*late.items()][:1]))

    return planning.builder(components_of(harness, store, overtake)).build(late)


def test_builder(harness: Harness) -> None:
    """The role allows all the builder does, even taking over a stale claim, and nothing it never does."""
    harness.deliver("m1", GOOD)
    harness.run_once()
    watched = WatchedStore(harness.store)
    builder = planning.builder(components_of(harness, watched))
    builder.build(messages("a", "b", size=6 * MIB) | messages("c"))
    builder.build(messages("a", "c"))
    harness.claims.claim(["s3://lake/raw/d#e1"], "2026-01-02-0000dead", now=harness.clock.now(), lease_seconds=60)
    harness.clock.advance(61)
    builder.build(messages("d"))
    assert [each.kind for each in [harness.ledger.accepted("2026-01-02-0000dead")] if each] == ["revoked"]
    for size in (MIB, 6 * MIB):  # a pending part and a manifest that come too late
        late = messages(f"late-{size}", f"other-{size}", size=size)
        assert set(overtaken_builder(harness, watched, late).failed) == set(late)
    check("BuilderRole", watched, is_all_used=True)


def test_sealer(harness: Harness) -> None:
    """The role allows listing, reading and deleting parts and writing manifests, and nothing else."""
    harness.deliver("m1", GOOD)
    harness.run_once()
    planning.builder(components_of(harness, harness.store)).build(messages("a", "b"))
    watched = WatchedStore(harness.store)
    harness.clock.advance(600)
    assert planning.sealer(components_of(harness, watched)).seal().manifests
    planning.builder(components_of(harness, harness.store)).build(messages("c"))
    harness.clock.advance(600)

    def overtake(point: PlanCrashPoint, _manifest_id: str) -> None:
        if point is PlanCrashPoint.CLAIMED:
            harness.clock.advance(301)
            planning.sealer(components_of(harness, harness.store)).seal()

    assert not planning.sealer(components_of(harness, watched, overtake)).seal().manifests
    harness.claims.claim(
        [part_key("2026-01-02-part")], "2026-01-02-0000dead", now=harness.clock.now(), lease_seconds=60
    )
    file = ManifestFile(uri="s3://lake/raw/d", etag="e1")
    part = Manifest(manifest_id="2026-01-02-part", date="2026-01-02", created_at=harness.clock.now(), files=(file,))
    harness.store.put(harness.layout.pending_part(part.manifest_id), part.to_json())
    harness.clock.advance(600)
    assert planning.sealer(components_of(harness, watched)).seal().manifests
    check("SealerRole", watched, is_all_used=True)


def test_job(harness: Harness) -> None:
    """The role allows what a run does, including rejects, a dead letter, retention and recovery."""
    watched = WatchedStore(harness.store)
    harness.deliver("m1", GOOD, FLAWED)
    harness.put_manifest("bad.json", b"{")
    harness.run_once(store=watched)
    harness.clock.advance(90 * 86_400)
    harness.deliver("m2", GOOD)
    harness.run_once(store=watched)
    assert {action for action, _ in watched.used} >= {
        "s3:GetObject",
        "s3:PutObject",
        "s3:DeleteObject",
        "s3:ListBucket",
    }
    check("JobRole", watched, is_all_used=False)
    assert not any(action != "s3:GetObject" and "/raw/" in arn for action, arn in watched.used)


def test_control_plane(harness: Harness) -> None:
    """The role allows reading heartbeats, commits and marks, stopping runs and recording notifications."""
    harness.deliver("m1", GOOD)
    harness.run_once()
    with pytest.raises(DiedError):
        rebuild(harness, force=True, on_crash_point=dying_at(CrashPoint.DECIDED))
    harness.deliver("late", GOOD)
    harness.clock.advance(3600)
    harness.app().heartbeat._write_heartbeat()
    watched = WatchedStore(harness.store)
    given, topic = harness.settings, "kafka://main/orders"
    plane = control_plane(
        replace(
            given,
            input=given.input.model_copy(update={"allowed_prefixes": (*given.input.allowed_prefixes, topic)}),
        ),
        clock=harness.clock,
        store=watched,
        job=MemoryGlue(harness.clock),
        metrics=harness.metrics,
        notifier=MemoryNotifier(),
    )
    assert plane.check().alarms
    plane.sources.runs.ask_to_stop("a-run")
    check("ControlRole", watched, is_all_used=True)
