"""Records what planners of a topic leave as they die, or are held up, at each change, while records come and go."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from compactor.core.documents.manifest import Manifest
from compactor.core.errors import ObjectNotFound
from compactor.core.layout import Layout, base_name
from compactor.core.logs.names import LogName
from compactor.core.ports import ObjectStore
from compactor.ledger.landing.chains import LogChains, PartitionPlace
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.sources.landing.lander import Lander
from compactor.sources.landing.lines import ValueLines
from tests.protocol.configurations import Configuration, landing
from tests.protocol.traces import Chained, Trace
from tests.support.harness import DiedError
from tests.support.memory_kafka import MemoryKafka
from tests.support.memory_store import ManualClock, MemoryMetrics, MemoryStore
from tests.support.rebuilding import NEVER, WatchedStore

TOPIC = LogName("kafka", "main", "events")
PLACE = PartitionPlace(TOPIC, "1", "0")
LAYOUT = Layout("s3://lake/m", "s3://lake/o", "s3://lake/s")
CHANGES = 10
"""So many changes has a plan that begins a chain and writes one manifest."""

UNKNOWN = 99


class Scene:
    """A topic of one partition, and who plans it.

    Args:
        name: Of the trace.
    """

    def __init__(self, name: str) -> None:
        self.trace = Trace(name)
        self._store = MemoryStore()
        self._log = MemoryKafka()
        [self._partition] = self._log.create(TOPIC, "1")
        self._ids: list[str] = []
        self._note()

    @property
    def ids(self) -> int:
        """How many manifests were planned."""
        return len(self._ids)

    def produce(self, records: int = 1) -> None:
        for _ in range(records):
            self._partition.append(b"{}")
            self._note()

    def remove(self) -> None:
        """Retention takes one record."""
        self._partition.remove_before(self._partition.earliest + 1)
        self._note()

    def plan(self, *, die_at: int = NEVER, hold_at: int = NEVER) -> None:
        """A planner plans all there is; at a change, it dies, or another one comes between."""
        changes = 0

        def note() -> None:
            nonlocal changes
            self._note()
            changes += 1
            if changes == hold_at:
                self.produce()
                self.plan()

        store = WatchedStore(self._store, die_at, note)
        with suppress(DiedError):
            self._lander(store).land(TOPIC, max_manifests=10)

    def _lander(self, store: ObjectStore) -> Lander:
        return Lander(
            state=self._state(store),
            log=self._log,
            allowed_prefixes=[str(TOPIC)],
            target_bytes=lambda: 1000.0,
            new_lines=lambda _log, _partition: ValueLines(),
            metrics=MemoryMetrics(),
        )

    def _state(self, store: ObjectStore) -> State:
        clock = ManualClock()
        return State(store=store, layout=LAYOUT, ledger=Ledger(store, LAYOUT, clock, "run"), clock=clock)

    def _note(self) -> None:
        chains = LogChains(self._state(self._store))
        drafts = self._named(chains.drafts_folder(TOPIC, "1"))
        written = self._named(LAYOUT.manifests_folder)
        links = [*chains.chain(PLACE).links()]
        ids = (*drafts, *(each.manifest_id for each in links), *written)
        self._ids += [each for each in dict.fromkeys(ids) if each not in self._ids]
        number = {each: at for at, each in enumerate(self._ids, 1)}
        try:
            origin = int(chains.origin(PLACE).after)
        except ObjectNotFound:
            origin = UNKNOWN
        self.trace.add(
            Chained(
                end=self._partition.end,
                earliest=self._partition.earliest,
                origin=origin,
                links=frozenset((each.first, each.end, number[each.manifest_id]) for each in links),
                drafts=frozenset(number[each] for each in drafts),
                written=frozenset(number[each] for each in written),
            )
        )

    def _named(self, folder: str) -> list[str]:
        return [base_name(info.uri).removesuffix(".json") for info in self._store.list(folder)]

    def manifests(self) -> Iterator[Manifest]:
        """All that were written."""
        for info in self._store.list(LAYOUT.manifests_folder):
            yield Manifest.model_validate_json(self._store.read(info.uri))


def model_of(scenes: Sequence[Scene], *, stops: int) -> Configuration:
    """The model for some scenes, as small as they allow: it tries whatever may be unseen.

    Args:
        scenes: At least one.
        stops: How many planners die in each.
    """
    ids = max(scene.ids for scene in scenes)
    values = {"Partitions": '{"k1"}', "Planners": "{c1, c2}", "MaxOffset": 3, "MaxIds": ids, "MaxStops": stops}
    return landing("as recorded", **values)


def deaths() -> Iterator[Scene]:
    """A planner that dies at each change, and another one that finds what it left."""
    for at in range(CHANGES + 1):
        scene = Scene(f"a planner dies before change {at}")
        scene.produce(2)
        scene.plan(die_at=at)
        scene.remove()
        scene.plan()
        yield scene


def meetings() -> Iterator[Scene]:
    """A planner that is held up after each change, until another one has planned."""
    for at in range(1, CHANGES + 1):
        scene = Scene(f"a planner is held up after change {at}")
        scene.produce()
        scene.plan(hold_at=at)
        scene.produce()
        scene.plan()
        yield scene
