"""What a command costs does not depend on how many dates are closed. Calls are counted, which is the same each time."""

from collections.abc import Callable
from datetime import date, timedelta

import pytest

from compactor.ledger.accounts.reading import Scope
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.ops.report.period import Period
from compactor.ops.report.reader import read_figures
from compactor.wiring import operating
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, GOOD, Harness
from tests.support.histories import HOUR_SECONDS, QUIET_HOURS, closed

FEW, MANY = 2, 12


@pytest.fixture(scope="module")
def histories() -> tuple[Harness, Harness]:
    """Few and many closed dates, each with one open date behind them."""
    return history(FEW), history(MANY)


def history(days: int) -> Harness:
    harness = Harness()
    for day in range(days + 1):
        if day == days:
            harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
            closed(harness)
            # The ring of latest commits is bounded by itself, and holds more of many dates than of few.
            harness.store.delete([info.uri for info in harness.store.list(harness.layout.recent_folder)])
        name = (date.fromisoformat(DAY) + timedelta(days=day)).isoformat()
        for number in range(2):
            manifest_id = f"{name}-{number}"
            files = [harness.file(f"{manifest_id}.ndjson", GOOD)]
            manifest = harness.manifest(manifest_id, files).model_copy(update={"date": name})
            harness.put_manifest(f"{manifest_id}.json", manifest.to_json())
        harness.run_once()
    return harness


def report(harness: Harness, store: FaultyStore) -> object:
    app, now = harness.app(store=store), harness.clock.now()
    return read_figures(app.state, app.registry, Period(now - timedelta(hours=1), now), target_file_bytes=1 << 20)


COMMANDS: dict[str, Callable[[Harness, FaultyStore], object]] = {
    "verify": lambda harness, store: operating.verifier(harness.app(store=store)).verify_all(),
    "close": lambda harness, store: operating.closer(harness.app(store=store)).close(),
    "report": report,
    "redrive": lambda harness, store: find_redrivable(harness.app(store=store).state, Scope("files")),
    "status": lambda harness, store: operating.status_reader(harness.app(store=store)).read(),
    "start": lambda harness, store: harness.run_once(store=store),
}


def calls(harness: Harness, command: str) -> int:
    store = FaultyStore(harness.store)
    COMMANDS[command](harness, store)
    return sum(number for method, number in store.calls.items() if method != "any")


@pytest.mark.parametrize("command", COMMANDS)
def test_calls_do_not_depend_on_closed_dates(command: str, histories: tuple[Harness, Harness]) -> None:
    """With 12 closed dates it makes as many calls as with 2, within 20 %."""
    few, many = (calls(harness, command) for harness in histories)
    assert many <= 1.2 * few


def test_all_records_cost_more(histories: tuple[Harness, Harness]) -> None:
    """So the test above can tell: by all records, `verify` costs several times as much."""
    few, many = (FaultyStore(harness.store) for harness in histories)
    for harness, store in zip(histories, (few, many), strict=True):
        operating.verifier(harness.app(store=store)).verify_all(closed=True)
    assert many.calls.total() > 3 * few.calls.total()
