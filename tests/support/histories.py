"""Random histories of a state whose dates are closed meanwhile: every command has to answer as if none was closed."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.counts import Counts
from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import CompactorError
from compactor.core.ports import ObjectStore
from compactor.ledger.accounts.account import Kind
from compactor.ledger.accounts.reading import Scope
from compactor.ops.closing.closer import ClosingReport
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.ops.rejects import RejectsSearch
from compactor.ops.report.figures import Figures
from compactor.ops.report.period import Period
from compactor.ops.report.reader import read_figures
from compactor.ops.verify.report import VerifyResult
from compactor.wiring import operating
from tests.support.fakes import FailingEngine
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness, dying_at
from tests.support.rebuilding import WatchedStore, rebuild

HOUR_SECONDS = 3600.0
DAYS = 4
QUIET_HOURS = 50


def closed(harness: Harness, store: ObjectStore | None = None) -> ClosingReport:
    """What a fresh process closes."""
    return operating.closer(harness.app(store=store)).close()


def verified(harness: Harness, *, by_records: bool = False) -> VerifyResult:
    """What `verify` says, by the summaries or by all records."""
    return operating.verifier(harness.app()).verify_all(closed=by_records)


def answer(report: VerifyResult) -> dict[str, Any]:
    """What a verification says, apart from order, and from settled things, which are only counted once closed."""
    return {
        "sums": {name: getattr(report, name) for name in Counts().by_name},
        "unfinished": report.unfinished,
        "discrepancies": sorted(map(repr, report.discrepancies)),
        "quarantined": sorted(
            repr(replace(each, redriven=False)) for each in report.quarantined_files if not each.is_settled
        ),
        "letters": sorted(repr(each) for each in report.dead_letter_manifests if not each.is_settled),
        "needs_operator": report.needs_operator,
    }


@contextmanager
def unclosed(harness: Harness) -> Iterator[None]:
    """Within it, every command reads all records."""
    place = harness.layout.closing_begun
    begun = harness.store.read(place) if harness.store.stat(place) else None
    harness.store.delete([place])
    try:
        yield
    finally:
        if begun is not None:
            harness.store.put(place, begun)


PERIODS_HOURS = (30, 200)


def reported(harness: Harness) -> list[Figures]:
    """What `report` says of a short and of a long time until now."""
    app, now = harness.app(), harness.clock.now() + timedelta(seconds=1)
    periods = [Period(now - timedelta(hours=hours), now) for hours in PERIODS_HOURS]
    return [read_figures(app.state, app.registry, period, target_file_bytes=1 << 20) for period in periods]


def redrivable(harness: Harness, kind: Kind) -> list[tuple[str, int]]:
    """What there is to redrive: manifests with how many things of each."""
    scan = find_redrivable(harness.app().state, Scope(kind))
    # One without things is only there for an earlier redrive that was not written.
    return sorted((source.key.id, source.things) for source in scan.sources if source.things)


def letters(harness: Harness) -> tuple[tuple[int, int], int]:
    """What `status` says of dead letters: how many are kept and were looked at, and how many are open."""
    found = operating.status_reader(harness.app()).read().dead_letters
    assert sum(found.by_reason.values()) == found.open
    return (found.manifests, found.looked_at), found.open


def needing_a_person(harness: Harness) -> tuple[set[str], set[str]]:
    """The manifests that are dead letters, and those with quarantined files, which need a person.

    All commands have to say the same of them, by the summaries and by all records.
    """
    report = verified(harness)
    letters, files = _ids(report.open_letters), _ids(report.open_files)
    whole = verified(harness, by_records=True)
    assert (_ids(whole.open_letters), _ids(whole.open_files)) == (letters, files)
    for each in (report, whole):
        assert each.needs_operator == bool(letters or files or each.discrepancies)
    traces = {each: operating.tracer(harness.app()).trace_manifest(each) for each in _ids(whole.dead_letter_manifests)}
    assert {each for each, found in traces.items() if found.needs_operator} == letters
    assert {each for each, found in traces.items() if found.next_moves} == letters
    of_files = (
        each for each in whole.quarantined_files if operating.tracer(harness.app()).trace(each.uri).needs_operator
    )
    assert files <= _ids(of_files)
    status, [*_, figures] = operating.status_reader(harness.app()).read(), reported(harness)
    assert (_ids(status.dead_letters.latest), status.dead_letters.open) == (letters, len(letters))
    assert _ids(status.quarantined_files.latest) == files
    assert _ids(each for each in figures.dead_letters.latest if not each.is_settled) == letters
    assert _ids(each for each in figures.quarantined_files.latest if not each.is_settled) == files
    assert {each for each, _ in redrivable(harness, "manifests")} == letters
    assert {each for each, _ in redrivable(harness, "files")} == files
    return letters, files


def _ids(found: Iterable[Any]) -> set[str]:
    return {each.manifest_id for each in found}


def rejected(harness: Harness) -> list[tuple[str, dict[str, int], int, int]]:
    """What `rejects` says, and how many lines it shows."""
    search = RejectsSearch(harness.app().state)
    found = [(each, len(list(search.lines_of(each)))) for each in search.manifests()]
    assert not search.unreadable, search.unreadable
    return [(each.commit.manifest_id, dict(each.counts), each.unkept, lines) for each, lines in found]


class History:
    """A state to which random things happen. The same seed makes the same things happen in the same order.

    Args:
        seed: Of the history.
        check: Called after each thing that has happened.
    """

    def __init__(self, seed: int, check: Callable[["History"], None]) -> None:
        self.harness = Harness(stream={"max_attempts": 2}, output={"target_file_bytes": 1 << 20})
        self.happened: Counter[str] = Counter()
        self._check = check
        self._steps = random.Random(seed)
        self._random = random.Random()
        self._number = 0

    def run(self, steps: int) -> None:
        """Let this many things happen."""
        kinds: dict[Callable[[], None], int] = {
            self._deliver: 6,
            self._work: 5,
            self._die_at_work: 2,
            self._redrive: 2,
            self._exhaust: 1,
            self._name_again: 2,
            self._rebuild: 2,
            self._die_rebuilding: 1,
            self._close: 5,
            self._die_closing: 3,
            self._close_beside: 2,
        }
        for _ in range(steps):
            # Each step has its own chance: how many draws one takes depends on its threads, and may not change others.
            self._random.seed(self._steps.random())
            happening = self._steps.choices(list(kinds), list(kinds.values()))[0]
            happening()
            self.happened[happening.__name__.strip("_")] += 1
            self._check(self)

    def finish(self) -> None:
        """Do all work that is left, and close everything."""
        self._clock(1)
        self.harness.run_once()
        self._clock(QUIET_HOURS)
        closed(self.harness)
        self._check(self)

    def _clock(self, hours: float) -> None:
        self.harness.clock.advance(hours * HOUR_SECONDS)

    def _day(self) -> str:
        return (date.fromisoformat(DAY) + timedelta(days=self._random.randrange(DAYS))).isoformat()

    def _deliver(self) -> None:
        harness, day = self.harness, self._day()
        for _ in range(self._random.randint(1, 3)):
            self._number += 1
            name = f"{day}-m{self._number}"
            if self._random.random() < 0.15:
                harness.put_manifest(f"{name}.json", b"{}")
                continue
            files = [harness.file(f"{name}-{part}.ndjson", self._random.choice((GOOD, FLAWED))) for part in range(2)]
            if self._random.random() < 0.3:
                lost = f"{harness.root}/raw/{self._random.choice(('a', 'b'))}-{day}.ndjson"
                files.append(self._maybe_there(lost))
            manifest = harness.manifest(name, files).model_copy(update={"date": day})
            harness.put_manifest(f"{name}.json", manifest.to_json())

    def _maybe_there(self, uri: str) -> ManifestFile:
        """A file that several manifests name; often it is gone, so that later versions settle earlier ones."""
        if self._random.random() < 0.4:
            self.harness.store.put(uri, GOOD + b'{"id": "%d"}\n' % self._number)
            return self.harness.named(uri)
        self.harness.store.delete([uri])
        return ManifestFile(uri=uri, etag=f"gone-{self._number}")

    def _work(self) -> None:
        self._clock(self._random.choice((0.01, 1, 20)))
        self.harness.run_once()

    def _die_at_work(self) -> None:
        self._deliver()
        step = self._random.choice(list(CrashPoint))
        runner = self.harness.runner(on_crash_point=dying_at(step, self._random.randint(1, 2)))
        with suppress(DiedError, CompactorError):
            runner.run(self.harness.waiting())

    def _redrive(self) -> None:
        kind: Kind = self._random.choice(("manifests", "files", "rejects"))
        if kind == "files":
            for each in operating.verifier(self.harness.app()).verify_all(closed=True).quarantined_files:
                self.harness.store.put(each.uri, GOOD)
        app = self.harness.app()
        operating.redriver(app).redrive(find_redrivable(app.state, Scope(kind)))

    def _exhaust(self) -> None:
        """What waits becomes dead letters."""
        self._deliver()
        for uri in self.harness.waiting() * 3:
            self.harness.runner(engine=FailingEngine(self.harness.store, ValueError("too much"))).run([uri])

    def _name_again(self) -> None:
        """Another manifest names some files of dead letters that were not redriven."""
        for manifest_id, _ in redrivable(self.harness, "manifests"):
            accepted = self.harness.ledger.accepted(manifest_id)
            files = accepted.manifest.files if accepted is not None and accepted.manifest is not None else ()
            if some := [each for each in files if self._random.random() < 0.7]:
                self._number += 1
                manifest = self.harness.manifest(f"{self._day()}-again{self._number}", some)
                self.harness.put_manifest(f"{manifest.manifest_id}.json", manifest.to_json())
        self._clock(1)
        self.harness.run_once()

    def _damage(self) -> dict[str, bytes]:
        """Lose some files of rows; what they held."""
        store = self.harness.store
        outputs = [info.uri for info in store.list(self.harness.layout.output + "/")]
        lost = self._random.sample(outputs, min(len(outputs), self._random.randint(1, 2)))
        held = {uri: store.read(uri) for uri in lost}
        store.delete(lost)
        return held

    def _rebuilt(self, damaged: dict[str, bytes]) -> None:
        """Rebuild; what cannot be made again for want of its input comes back by itself."""
        refused = {each.manifest_id for each in rebuild(self.harness).refused}
        for uri, data in damaged.items():
            owner = self.harness.layout.output_owner(uri)
            if owner is not None and owner.id in refused:
                self.harness.store.put(uri, data)

    def _rebuild(self) -> None:
        self.harness.run_once()
        self._rebuilt(self._damage())

    def _die_rebuilding(self) -> None:
        self.harness.run_once()
        damaged = self._damage()
        with suppress(DiedError):
            rebuild(self.harness, store=WatchedStore(self.harness.store, self._random.randrange(12)))
        if self._random.random() < 0.5 or any(self.harness.store.stat(uri) is None for uri in damaged):
            self._rebuilt(damaged)

    def _close(self) -> None:
        self._clock(self._random.choice((1, QUIET_HOURS, QUIET_HOURS)))
        closed(self.harness)

    def _die_closing(self) -> None:
        self._clock(QUIET_HOURS)
        with suppress(DiedError):
            closed(self.harness, WatchedStore(self.harness.store, self._random.randrange(8)))

    def _close_beside(self) -> None:
        """Something happens between two writes of a closing."""
        self._clock(QUIET_HOURS)
        others: list[Callable[[], object]] = [
            self._deliver,
            self.harness.run_once,
            self._redrive,
            lambda: closed(self.harness),
            self._rebuild,
        ]
        other, at = self._random.choice(others), self._random.randrange(6)
        changes = 0

        def on_change() -> None:
            nonlocal changes
            changes += 1
            if changes == at + 1:
                other()

        closed(self.harness, WatchedStore(self.harness.store, on_change=on_change))
