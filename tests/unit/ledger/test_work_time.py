"""How long files took from arrival to visible: an old file that a person planned is not late."""

from datetime import UTC, datetime, timedelta

import pytest

from compactor.core.documents.changes import Commit
from compactor.core.layout import redriven_id
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.work_time import arrival_seconds
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.wiring import finding, operating
from tests.support.harness import GOOD, Harness

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def planned(harness: Harness) -> str:
    """Plan a file that was written long ago, in a manifest that waits for a minute; returns the manifest's id."""
    now = harness.clock.now()
    harness.clock.set(LONG_AGO)
    harness.store.put("/w/raw/2025-12-21-a.ndjson", GOOD)
    harness.clock.set(now)
    [manifest] = finding.plan(harness.app(), "/w/raw").manifests
    harness.clock.set(now + timedelta(minutes=1))
    return manifest.manifest_id


def seconds_of(harness: Harness, manifest_id: str) -> list[float]:
    accepted = harness.ledger.accepted(manifest_id)
    assert accepted is not None
    outcome = harness.ledger.outcome(accepted.key)
    assert isinstance(outcome, Commit)
    return list(arrival_seconds(accepted, outcome, outcome.decided_at))


def test_a_listed_file_arrives_when_it_is_found() -> None:
    """The age of a file that a listing found says nothing of the job: it arrives with the listing."""
    harness = Harness()
    manifest_id = planned(harness)
    harness.run_once()
    assert seconds_of(harness, manifest_id) == [pytest.approx(60, abs=5)]


def test_an_announced_file_arrives_with_its_event() -> None:
    """A file that was announced waits from its event on, however late its manifest is written."""
    harness = Harness()
    event_time = harness.clock.now() - timedelta(hours=3)
    file = harness.file("a.ndjson", GOOD).model_copy(update={"event_time": event_time})
    harness.put_manifest("m.json", harness.manifest("m", [file]).to_json())
    harness.run_once()
    assert seconds_of(harness, "m") == [pytest.approx(3 * 3600, abs=5)]


def test_a_redriven_file_waits_since_it_was_found() -> None:
    """A file that was listed, quarantined and redriven counts from the listing, not from its last write."""
    harness = Harness()
    manifest_id = planned(harness)
    uri = "/w/raw/2025-12-21-a.ndjson"
    harness.store.delete([uri])
    harness.run_once()
    now = harness.clock.now()
    harness.clock.set(LONG_AGO)
    harness.store.put(uri, GOOD)
    harness.clock.set(now + timedelta(hours=1))
    app = harness.app()
    operating.redriver(app).redrive(find_redrivable(app.state, Scope("files")))
    harness.run_once()
    assert seconds_of(harness, redriven_id(manifest_id, 1)) == [pytest.approx(3660, abs=10)]
