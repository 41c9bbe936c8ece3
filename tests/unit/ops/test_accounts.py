"""What the records of a manifest mean: one account of it, and all commands say the same."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.records import Accepted
from compactor.ledger.accounts.account import AccountState, Kind
from compactor.ledger.accounts.reading import Detail, Scope, account_of, accounts
from compactor.ledger.accounts.settling import settled
from compactor.ops.redrive.giving_up import find_unsettled, given_up
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.wiring import operating
from tests.support.fakes import FailingEngine
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness, dying_at
from tests.support.histories import HOUR_SECONDS, QUIET_HOURS, closed, needing_a_person, redrivable, reported, verified

KINDS: tuple[Kind, ...] = ("manifests", "files", "rejects")


def stopped(point: CrashPoint) -> Callable[[Harness], None]:
    """Its driver died at a point."""

    def make(harness: Harness) -> None:
        with pytest.raises(DiedError):
            harness.runner(on_crash_point=dying_at(point)).run([harness.deliver("m", GOOD)])

    return make


def waits(harness: Harness) -> None:
    harness.deliver("m", GOOD)


def revoked(harness: Harness) -> None:
    harness.ledger.accept(Accepted(manifest_id="m", kind="revoked", date=DAY, accepted_at=harness.clock.now()))


def rejecting(harness: Harness) -> None:
    harness.deliver("m", FLAWED)
    harness.run_once()


def quarantined(harness: Harness) -> None:
    harness.deliver("m", GOOD, GOOD)
    harness.store.delete(["/w/raw/m-1.ndjson"])
    harness.run_once()


def dead(harness: Harness) -> None:
    harness.deliver("m", GOOD)
    for _ in range(3):
        harness.runner(engine=FailingEngine(harness.store, ValueError("too much"))).run(harness.waiting())


def redriven(kind: Kind, make: Callable[[Harness], None]) -> Callable[[Harness], None]:
    """It was redriven, and the job has not begun with that."""

    def made(harness: Harness) -> None:
        make(harness)
        harness.file("m-1.ndjson", GOOD)
        app = harness.app()
        operating.redriver(app).redrive(find_redrivable(app.state, Scope(kind)))

    return made


def taken_over(name: str, make: Callable[[Harness], None]) -> Callable[[Harness], None]:
    """A later manifest has rows of its file."""

    def made(harness: Harness) -> None:
        make(harness)
        harness.clock.advance(HOUR_SECONDS)
        harness.file(name, GOOD + GOOD)
        harness.put_manifest("later.json", harness.manifest("later", [harness.named(f"/w/raw/{name}")]).to_json())
        harness.run_once()

    return made


def dismissed(harness: Harness) -> None:
    quarantined(harness)
    state = harness.app().state
    given_up(state, find_unsettled(state, ["/w/raw/m-1.ndjson"]).inputs, "dismissed", "not needed", by="me")


class Case(NamedTuple):
    """How a manifest comes to a state, and what its account says: also how much of it is left to redrive."""

    make: Callable[[Harness], None]
    state: AccountState
    left: Mapping[Kind, int] = {}


CASES = {
    "unknown": Case(lambda _: None, AccountState.UNKNOWN),
    "waits": Case(waits, AccountState.WAITING),
    "accepted": Case(stopped(CrashPoint.ACCEPTED), AccountState.WAITING),
    "attempted": Case(stopped(CrashPoint.ATTEMPTED), AccountState.IN_WORK),
    "verified": Case(stopped(CrashPoint.VERIFIED), AccountState.IN_WORK),
    "decided": Case(stopped(CrashPoint.DECIDED), AccountState.DECIDED),
    "published": Case(stopped(CrashPoint.PUBLISHED), AccountState.DECIDED),
    "done": Case(stopped(CrashPoint.DONE), AccountState.DONE),
    "revoked": Case(revoked, AccountState.REVOKED),
    "rejects": Case(rejecting, AccountState.DONE, {"rejects": 2}),
    "quarantined": Case(quarantined, AccountState.DONE, {"files": 1}),
    "quarantined, redriven": Case(redriven("files", quarantined), AccountState.DONE),
    "quarantined, a later version": Case(taken_over("m-1.ndjson", quarantined), AccountState.DONE),
    "quarantined, dismissed": Case(dismissed, AccountState.DONE),
    "dead letter": Case(dead, AccountState.DEAD_LETTER, {"manifests": 1}),
    "dead letter, redriven": Case(redriven("manifests", dead), AccountState.DEAD_LETTER),
    "dead letter, taken over": Case(taken_over("m-0.ndjson", dead), AccountState.DEAD_LETTER),
}


@pytest.fixture
def harness() -> Harness:
    return Harness(stream={"max_attempts": 2})


@pytest.mark.parametrize("name", CASES)
def test_the_account(harness: Harness, name: str) -> None:
    """It is the same by the id and by the listing of the ledger, once something is on record there."""
    expected = CASES[name]
    expected.make(harness)
    state = harness.app().state
    account = settled(state, account_of(state, "m"))
    assert account.state is expected.state
    assert {kind: found for kind in KINDS if (found := account.left(kind).total())} == expected.left
    listed = [each for each in accounts(state, Scope(date=DAY, details=Detail.LINEAGE)) if each.id == "m"]
    assert [(each.outcome, each.is_done) for each in listed] == (
        [(account.outcome, account.is_done)] if account.records else []
    )


@pytest.mark.parametrize("name", CASES)
def test_all_commands_say_the_same(harness: Harness, name: str) -> None:
    """What waits for a person does so in each of them, and once the date is closed as well."""
    expected = CASES[name]
    expected.make(harness)
    reader = operating.status_reader(harness.app())  # one that goes on
    waiting = tuple({"m"} if kind in expected.left else set() for kind in ("manifests", "files"))
    for _ in range(2):
        assert needing_a_person(harness) == waiting
        assert not verified(harness).discrepancies
        assert dict(redrivable(harness, "rejects")).get("m", 0) == expected.left.get("rejects", 0)
        status = reader.read()
        assert (status.dead_letters.open, status.quarantined_files.open) == tuple(map(len, waiting))
        assert reported(harness)[-1].totals.redrives == name.endswith("redriven")
        harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
        closed(harness)
