"""Records what closings leave as they die at each change, lose its answer, or meet another process there."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, timedelta

from compactor.core.errors import CompactorError
from compactor.core.layout import ManifestKey, base_name, done_generation, outcome_generation
from compactor.ledger.history.closed_dates import ClosedDates
from tests.protocol.configurations import closing
from tests.protocol.traces import Summed, Trace
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, GOOD, DiedError, Harness
from tests.support.histories import HOUR_SECONDS, QUIET_HOURS, closed
from tests.support.rebuilding import NEVER, WatchedStore, rebuild

NEXT_DAY = (date.fromisoformat(DAY) + timedelta(days=1)).isoformat()
NUMBERS = {ManifestKey(DAY, "m1"): 11, ManifestKey(NEXT_DAY, "m2"): 12}
DATES = {DAY: 1, NEXT_DAY: 2}
MODEL = closing("as recorded", Manifests="{11, 12}", Second="{12}", MaxGenerations=2, Readers="{}")
CHANGES = 9
"""So many changes has a closing of two dates at most; a last one keeps their totals."""

OTHERS: dict[str, Callable[["Scene"], None]] = {
    "a late manifest": lambda scene: scene.work("m2"),
    "a rebuild": lambda scene: scene.rebuild(),
}


class Scene:
    """Two manifests of two dates, and those who work on them.

    Args:
        name: Of the trace.
        ids: The manifests that are brought to done first.
    """

    def __init__(self, name: str, *ids: str) -> None:
        self.trace = Trace(name)
        self._harness = Harness()
        for key in NUMBERS:
            file = self._harness.file(f"{key.id}.ndjson", GOOD)
            manifest = self._harness.manifest(key.id, [file]).model_copy(update={"date": key.date})
            self._harness.put_manifest(f"{key.id}.json", manifest.to_json())
        self._note()
        for each in ids:
            self.work(each)
        self.pass_time()

    def pass_time(self) -> None:
        """Let dates become quiet."""
        self._harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)

    def work(self, manifest_id: str) -> None:
        """A job brings a manifest to done."""
        store = self._watched()
        runner = self._harness.runner(store=store, engine=self._harness.engine(store))
        runner.run([self._harness.layout.manifest(manifest_id)])

    def rebuild(self) -> None:
        """An operator rebuilds the first manifest."""
        rebuild(self._harness, "m1", store=self._watched(), force=True)

    def close(self, *, die_at: int = NEVER, on_change: Callable[[], None] = lambda: None) -> None:
        """A process closes what is quiet."""

        def note() -> None:
            self._note()
            on_change()

        with suppress(DiedError):
            closed(self._harness, WatchedStore(self._harness.store, die_at, note))

    def close_in_vain(self, method: str, call: int) -> None:
        """The answer to a call is lost."""
        store = FaultyStore(self._watched())
        store.lose_answer_at(call, method)
        with suppress(CompactorError):
            closed(self._harness, store)

    def _watched(self) -> WatchedStore:
        return WatchedStore(self._harness.store, on_change=self._note)

    def _note(self) -> None:
        store, layout = self._harness.store, self._harness.layout
        dates = ClosedDates(store, layout)
        names = {key: [base_name(info.uri) for info in store.list(layout.ledger_records(key))] for key in NUMBERS}
        marks = [*dates.marks()]
        places = range(1, len([*store.list(layout.closed_folder)]) + 1)
        markers = [info.uri for info in store.list(layout.open_folder)]
        members = [[*dates.members(place)] for place in places]
        ids = {key.id: number for key, number in NUMBERS.items()}
        sums = [dates.read(place).sums.manifests for place in places]
        self.trace.add(
            Summed(
                delivered=frozenset(ids[key] for key in ids if store.stat(layout.manifest(key)) is not None),
                whole=frozenset(NUMBERS.values()),  # nothing is lost here
                open=frozenset(
                    (number, generation)
                    for key, number in NUMBERS.items()
                    for generation in {
                        layout.opened_generation(uri) for uri in markers if layout.opened_id(uri) == key.id
                    }
                ),
                decided=tuple(max((outcome_generation(each) or 0 for each in names[key]), default=0) for key in names),
                done=tuple(max((done_generation(each) or 0 for each in names[key]), default=0) for key in names),
                marks=frozenset((NUMBERS[mark.key], mark.generation) for mark in marks if mark.key.id),
                dates=frozenset(DATES[mark.key.date] for mark in marks if not mark.key.id),
                begun=dates.has_begun(),
                log=tuple(frozenset((ids[each.id], each.generation) for each in some) for some in members),
                back=tuple(len(some) - committed for some, committed in zip(members, sums, strict=True)),
            )
        )


def _ended(scene: Scene) -> Trace:
    for _ in range(2):
        scene.pass_time()
        scene.close()
    return scene.trace


def deaths() -> Iterator[Trace]:
    """A closing that dies before each of its changes."""
    for at in range(CHANGES + 1):
        scene = Scene(f"a closing dies before change {at}", "m1", "m2")
        scene.close(die_at=at)
        yield _ended(scene)


def lost_answers() -> Iterator[Trace]:
    """A closing that loses the answer to each of its calls."""
    for method, calls in (("create", 5), ("delete", 4)):
        for call in range(1, calls + 1):
            scene = Scene(f"a closing loses the answer to {method} {call}", "m1", "m2")
            scene.close_in_vain(method, call)
            yield _ended(scene)


def meetings() -> Iterator[Trace]:
    """A closing in which another process does all of its work after each change."""
    for other, happen in OTHERS.items():
        for at in range(1, CHANGES + 1):
            scene = Scene(f"{other} after change {at} of a closing", "m1", *(["m2"] if "late" not in other else []))
            changes = 0

            def on_change(at: int = at, scene: Scene = scene, happen: Callable[[Scene], None] = happen) -> None:
                nonlocal changes
                changes += 1
                if changes == at:
                    happen(scene)

            scene.close(on_change=on_change)
            yield _ended(scene)
