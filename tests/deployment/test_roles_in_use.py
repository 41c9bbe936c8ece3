"""Functions and job at work: everything that they do in S3 is allowed by their roles, place by place."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from compactor.adapters.memory.glue import MemoryGlue, MemoryNotifier
from compactor.core.crash_points import BuildStep
from compactor.core.manifest import Manifest, ManifestFile
from compactor.core.ports import ObjectInfo, ObjectStore, ObjectWriter
from compactor.manifests.building.builder import BuildReport
from compactor.manifests.claiming import part_key
from compactor.wiring.components import Parts
from compactor.wiring.control import ControlParts
from tests.deployment.permissions import allows, statements
from tests.deployment.resolving import Document, parameters_of, resources, template
from tests.support.harness import FLAWED, GOOD, World
from tests.support.s3_messages import SHAPES

MIB = 1024 * 1024
NOT_OF_THE_STORE = {"ReadSettings", "ReadArtefacts"}


class WatchedStore:
    """Notes which permission each call takes, and where."""

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
        self._note(uri, "s3:PutObject", "s3:GetObject")  # it reads what was there before
        return self._store.create(uri, data)

    def put(self, uri: str, data: bytes) -> None:
        self._note(uri, "s3:PutObject")
        self._store.put(uri, data)

    def upload(self, uri: str, path: Path) -> None:
        self._note(uri, "s3:PutObject", "s3:AbortMultipartUpload")
        self._store.upload(uri, path)

    def writer(self, uri: str) -> ObjectWriter:
        self._note(uri, "s3:PutObject", "s3:AbortMultipartUpload")
        return self._store.writer(uri)

    def copy(self, source: str, target: str) -> None:
        self._note(source, "s3:GetObject")
        self._note(target, "s3:PutObject", "s3:AbortMultipartUpload")
        self._store.copy(source, target)

    def delete(self, uris: Iterable[str]) -> None:
        doomed = list(uris)
        for uri in doomed:
            self._note(uri, "s3:DeleteObject")
        self._store.delete(doomed)

    def _note(self, uri: str, *actions: str) -> None:
        self.used.update((action, f"arn:aws:s3:::{uri.removeprefix('s3://')}") for action in actions)


def role(name: str) -> Document:
    """A role for the places of a world."""
    places = {
        "WorkBucketName": "lake",
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
            if action.startswith("s3:") and sid not in NOT_OF_THE_STORE
        }
        unused = {
            (action, place)
            for action, place in granted
            if not any(action == done and arn.startswith(place) for done, arn in store.used)
        }
        assert unused == set()


@pytest.fixture
def world() -> World:
    return World(root="s3://lake", builder={"target_manifest_bytes": 10 * MIB})


def parts_of(world: World, store: ObjectStore) -> Parts:
    return Parts(world.settings, clock=world.clock, store=store, claims=world.claims)


def messages(*names: str, size: int = MIB) -> dict[str, str]:
    return {name: SHAPES["s3"]("lake", f"raw/{name}", size, "e1") for name in names}


def builder_held_up(world: World, store: ObjectStore, late: dict[str, str]) -> BuildReport:
    """What a builder reports that another one overtakes beyond its lease."""

    def overtake(step: BuildStep, _manifest_id: str) -> None:
        if step is BuildStep.CLAIMED:
            world.clock.advance(301)
            parts_of(world, world.store).builder().build(dict([*late.items()][:1]))

    return parts_of(world, store).builder(on_step=overtake).build(late)


def test_builder(world: World) -> None:
    """The builder may do what it does, down to taking over a stale claim; and nothing that it never does."""
    world.deliver("m1", GOOD)
    world.run_once()
    watched = WatchedStore(world.store)
    builder = parts_of(world, watched).builder()
    builder.build(messages("a", "b", size=6 * MIB) | messages("c"))
    builder.build(messages("a", "c"))
    world.claims.claim(["s3://lake/raw/d#e1"], "2026-01-02-0000dead", now=world.clock.now(), lease_seconds=60)
    world.clock.advance(61)
    builder.build(messages("d"))
    assert [each.kind for each in [world.ledger.accepted("2026-01-02-0000dead")] if each] == ["void"]
    for size in (MIB, 6 * MIB):  # a pending part, and a manifest, that come too late
        late = messages(f"late-{size}", f"other-{size}", size=size)
        assert set(builder_held_up(world, watched, late).failed) == set(late)
    check("BuilderRole", watched, is_all_used=True)


def test_sealer(world: World) -> None:
    """The sealer may list, read and clear parts and write manifests, and no more."""
    world.deliver("m1", GOOD)
    world.run_once()
    parts_of(world, world.store).builder().build(messages("a", "b"))
    watched = WatchedStore(world.store)
    world.clock.advance(600)
    assert parts_of(world, watched).sealer().seal().manifests
    parts_of(world, world.store).builder().build(messages("c"))
    world.clock.advance(600)

    def overtake(step: BuildStep, _manifest_id: str) -> None:
        if step is BuildStep.GATHERED:
            world.clock.advance(301)
            parts_of(world, world.store).sealer().seal()

    assert not parts_of(world, watched).sealer(on_step=overtake).seal().manifests
    world.claims.claim([part_key("2026-01-02-part")], "2026-01-02-0000dead", now=world.clock.now(), lease_seconds=60)
    file = ManifestFile(uri="s3://lake/raw/d", etag="e1")
    part = Manifest(manifest_id="2026-01-02-part", date="2026-01-02", created_at=world.clock.now(), files=(file,))
    world.store.put(world.layout.pending_part(part.manifest_id), part.to_json())
    world.clock.advance(600)
    assert parts_of(world, watched).sealer().seal().manifests
    check("SealerRole", watched, is_all_used=True)


def test_job(world: World) -> None:
    """The job may do what a run does: rejects, a dead letter, cleaning and recovery included."""
    watched = WatchedStore(world.store)
    world.deliver("m1", GOOD, FLAWED)
    world.put_manifest("bad.json", b"{")
    world.run_once(store=watched)
    world.clock.advance(90 * 86_400)
    world.deliver("m2", GOOD)
    world.run_once(store=watched)
    assert {action for action, _ in watched.used} >= {
        "s3:GetObject",
        "s3:PutObject",
        "s3:DeleteObject",
        "s3:ListBucket",
    }
    check("JobRole", watched, is_all_used=False)
    assert not any(action != "s3:GetObject" and "/raw/" in arn for action, arn in watched.used)


def test_control_plane(world: World) -> None:
    """The control plane may read signs of life and the ledger's latest, ask runs to end and note what it told."""
    world.deliver("m1", GOOD)
    world.run_once()
    world.deliver("late", GOOD)
    world.clock.advance(3600)
    world.app().presence._beat()
    watched = WatchedStore(world.store)
    parts = ControlParts(
        world.settings,
        clock=world.clock,
        store=watched,
        job=MemoryGlue(world.clock),
        metrics=world.metrics,
        notifier=MemoryNotifier(),
    )
    assert parts.plane.step().alarms
    parts.sources.runs.ask_to_stop("a-run")
    check("ControlRole", watched, is_all_used=True)
