"""Writes input files and manifests all the time, and keeps a record of what must become of them."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import CompactorError, StuckError
from compactor.core.layout import base_name, is_delivery
from compactor.core.ports import ObjectStore
from compactor.sources.input_files import FileScope
from compactor.wiring import finding
from compactor.wiring.app import App
from tests.soak.files import DAY, FileSpec, make_file
from tests.soak.phases import Feed, Phase
from tests.soak.trouble import Expected, Trouble, is_troubled

BACKLOG_MANIFESTS = 12
"""The feeder rests while so many wait, so that most of what it wrote was worked on in the thick of it."""

STEADY_FILES = 5
STEADY_PAUSE_SECONDS = 0.05
"""Between two looks whether the job has room for more."""

_BROKEN = (
    (b"", "empty"),
    (b"{broken", "not_json"),
    (b"[]", "not_an_object"),
    (b'{"version": 9}', "unknown_version"),
    (b'{"files": []}', "unknown_form"),
    (b'{"fileLocations": [{"URIPrefixes": ["/elsewhere/x.ndjson"]}]}', "outside_allowed_prefixes"),
)


class Fate(StrEnum):
    """What must become of the lines of a file."""

    ONCE = "once"
    ALL_OR_NONE = "all or none"  # it was replaced while the job could have been reading it
    NEVER = "never"  # it was replaced before its manifest came


@dataclass(frozen=True, slots=True)
class Fed:
    """One file that was written and named in a manifest."""

    spec: FileSpec
    uri: str
    fate: Fate = Fate.ONCE


@dataclass(slots=True)
class Record:
    """Everything that was fed.

    Attributes:
        files: Those that a manifest names, or that were left for the planner.
        expected: What must become of manifests and files that something is wrong with.
        events: What the feeder did, by kind.
        delivered: When honest manifests of a steady feed came, by id.
    """

    files: list[Fed] = field(default_factory=list)
    expected: Expected = field(default_factory=Expected)
    events: Counter[str] = field(default_factory=Counter)
    delivered: dict[str, datetime] = field(default_factory=dict)


class Feeder:
    """Feeds the places of a job.

    Args:
        store: Reaches them without faults.
        app: Says where they are, and may read everything.
        new_planner: Makes an app whose planner goes through faults.
        seed: What is fed follows from it.
        for_spark: Whether lines may be fed that only Spark cannot read.
        pause_seconds: Between two deliveries.
        with_killers: Whether workers have processes of their own, for some files to kill.
    """

    def __init__(
        self,
        store: ObjectStore,
        app: App,
        new_planner: Callable[[], App],
        *,
        seed: int,
        for_spark: bool,
        pause_seconds: float,
        with_killers: bool = False,
    ) -> None:
        self.record = Record()
        self.failure: BaseException | None = None
        self._store = store
        self._input = app.settings.input.allowed_prefixes[0].rstrip("/")
        self._manifests = app.layout.manifests_folder
        self._new_planner = new_planner
        self._app = app
        self._spec = FileSpec(seed, 0, for_spark=for_spark)
        self._chance = random.Random(f"{seed}:feeder")
        self._pause_seconds = pause_seconds
        self._trouble = Trouble(
            store,
            self._input,
            self._manifests,
            self._new_file,
            expected=self.record.expected,
            with_killers=with_killers,
        )
        self._phase = Phase("", 1.0)
        self._next_trouble = 0.0
        self._burst = 0
        self._steps = 0
        self._delivered: list[tuple[str, bytes]] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeder")

    def start(self) -> None:
        self._thread.start()

    def turn(self, phase: Phase) -> None:
        """From now on, feed what belongs to a phase."""
        self._burst, self._next_trouble, self._phase = phase.burst, 0.0, phase

    def stop(self) -> None:
        """End after the delivery in hand."""
        self._stopping.set()
        self._thread.join()

    def waiting(self) -> int:
        """How many manifests are in the watched prefix, without those that no one may read."""
        return len(self._left())

    def troubled(self) -> int:
        """How many of those are troubled."""
        return sum(is_troubled(base_name(uri)) for uri in self._left())

    def records_of_trouble(self) -> set[str]:
        """The records in the ledger of troubled manifests: each attempt and each decision adds one."""
        records = self._store.list(self._app.layout.ledger_folder_of(DAY))
        return {info.uri for info in records if any(is_troubled(part) for part in info.uri.split("/"))}

    def _left(self) -> set[str]:
        left = {info.uri for info in self._store.list(self._manifests) if is_delivery(info.uri)}
        return left - self.record.expected.closed

    def closed(self) -> int:
        """How many manifests that no one may read are still in the watched prefix."""
        return sum(info.uri in self.record.expected.closed for info in self._store.list(self._manifests))

    def plan(self) -> bool:
        """Run the planner over its part of the files; whether none is left for a later run."""
        place = f"{self._input}/planned"
        try:
            plan = finding.plan(self._new_planner(), place, FileScope(hidden=True), on_replaced="append")
        except StuckError:  # a manifest that the job may not read may name the same files; an operator may read it
            plan = finding.plan(self._app, place, FileScope(hidden=True), on_replaced="append")
        except CompactorError:
            return False
        self.record.events["plan runs"] += 1
        return not plan.held and not plan.manifests

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                is_steady = self._phase.feed is Feed.STEADY
                if sum(not is_troubled(base_name(uri)) for uri in self._left()) < BACKLOG_MANIFESTS:
                    (self._deliver_steadily if is_steady else self._step)()
                self._deliver_trouble()
                self._stopping.wait(STEADY_PAUSE_SECONDS if is_steady else self._pause_seconds)
        except BaseException as exc:  # noqa: BLE001 - told at the end: a soak that was not fed shows nothing
            self.failure = exc

    def _step(self) -> None:
        """One of each kind of delivery, then any."""
        kinds = {
            self._deliver: 10,
            self._deliver_locations: 2,
            self._deliver_with_missing: 1,
            self._deliver_replaced: 1,
            self._deliver_broken: 1,
            self._deliver_again: 2,
            self._feed_planner: 1,
        }
        (chosen,) = self._chance.choices(list(kinds), list(kinds.values()))
        step = list(kinds)[self._steps] if self._steps < len(kinds) else chosen
        self._steps += 1
        step()

    def _deliver_trouble(self) -> None:
        seconds, now = self._phase.trouble_seconds, time.monotonic()
        if not seconds or (now < self._next_trouble and not self._burst):
            return
        for _ in range(max(1, self._burst)):
            self.record.events[self._trouble.deliver()] += 1
        self._burst, self._next_trouble = 0, now + seconds

    def _deliver_steadily(self) -> None:
        manifest_id = self._put_manifest([self._new_file() for _ in range(STEADY_FILES)])
        self.record.delivered[manifest_id] = datetime.now(UTC)
        self.record.events["steady manifests"] += 1

    def _deliver(self) -> None:
        self._put_manifest(self._new_files())
        self.record.events["manifests"] += 1

    def _deliver_locations(self) -> None:
        """The other form of a manifest, which says nothing of versions and is called after its object."""
        uris = [file.uri for file in self._new_files()]
        data = json.dumps({"fileLocations": [{"URIPrefixes": uris}]}).encode()
        self._put(f"l{len(self._delivered)}.json", data)
        self.record.events["manifests by locations"] += 1

    def _deliver_with_missing(self) -> None:
        gone = ManifestFile(uri=f"{self._input}/{DAY}-never-{len(self._delivered)}.ndjson", size_bytes=7)
        self._put_manifest([*self._new_files(), gone])
        self.record.events["manifests with a missing file"] += 1

    def _deliver_replaced(self) -> None:
        """A file gets other content before or after its manifest was delivered; that comes with one of its own."""
        first, second = self._next_versions()
        uri = f"{self._input}/{DAY}-replaced-{first.number}.ndjson"
        old = self._write(first, uri)
        raced = self._chance.random() < 0.5
        self.record.files.append(Fed(first, uri, Fate.ALL_OR_NONE if raced else Fate.NEVER))
        if raced:
            self._put_manifest([old])
            time.sleep(self._chance.uniform(0, 3) * self._pause_seconds)
        new = self._write(second, uri)
        self.record.files.append(Fed(second, uri))
        if not raced:
            self._put_manifest([old])
        self._put_manifest([new])
        self.record.events["replaced files"] += 1

    def _deliver_broken(self) -> None:
        data, reason = self._chance.choice(_BROKEN)
        letters = self.record.expected.letters
        manifest_id = f"broken-{len(letters)}"
        self._store.put(f"{self._manifests}{manifest_id}.json", data)
        letters[manifest_id] = reason
        self.record.events["broken manifests"] += 1

    def _deliver_again(self) -> None:
        """The same manifest once more, under its old name or another one."""
        if not self._delivered:
            return
        name, data = self._chance.choice(self._delivered)
        if name.startswith("m") and self._chance.random() < 0.5:
            name = f"again-{self.record.events['repeated deliveries']}-{name}"
        self._store.put(self._manifests + name, data)
        self.record.events["repeated deliveries"] += 1

    def _feed_planner(self) -> None:
        for _ in range(self._chance.randrange(1, 5)):
            self._new_file("planned/")
        self.plan()

    def _new_files(self) -> list[ManifestFile]:
        return [self._new_file() for _ in range(self._chance.randrange(1, 6))]

    def _new_file(self, folder: str = "") -> ManifestFile:
        spec = self._next_spec()
        uri = f"{self._input}/{folder}{make_file(spec).name}"
        named = self._write(spec, uri)
        self.record.files.append(Fed(spec, uri))
        return named

    def _next_versions(self) -> tuple[FileSpec, FileSpec]:
        """Two contents of one file. Both may be empty, and would be one version then: such a file is passed over."""
        while True:
            first = replace(self._next_spec(), with_bad_lines=False)
            second = replace(first, version=2)
            if make_file(first).stored != make_file(second).stored:
                return first, second

    def _next_spec(self) -> FileSpec:
        self._spec = replace(self._spec, number=self._spec.number + 1)
        return self._spec

    def _write(self, spec: FileSpec, uri: str) -> ManifestFile:
        self._store.put(uri, make_file(spec).stored)
        info = self._store.stat(uri)
        if info is None:
            raise AssertionError(f"{uri}: written and not there")
        return ManifestFile(uri=uri, size_bytes=info.size_bytes, etag=info.etag, event_time=info.modified_at)

    def _put_manifest(self, files: Sequence[ManifestFile]) -> str:
        manifest_id = f"m{len(self._delivered)}"
        manifest = Manifest(manifest_id=manifest_id, date=DAY, created_at="2025-12-21T10:00:00Z", files=tuple(files))
        self._put(f"{manifest_id}.json", manifest.to_json())
        return manifest_id

    def _put(self, name: str, data: bytes) -> None:
        self._store.put(self._manifests + name, data)
        self._delivered.append((name, data))
