"""Dead letters, quarantined files and rejected lines to redrive, and the check that every line is there once."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from compactor.core.crash_points import OnCrashPoint, ignore_crash_point
from compactor.core.documents.changes import Commit
from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileStatus
from compactor.ledger.accounts.account import Kind
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ndjson.lines import Limits
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.ops.redrive.redriver import RedriveReport
from compactor.wiring import finding, operating
from tests.support import fakes
from tests.support.fakes import FailingEngine
from tests.support.harness import DAY, FLAWED, GOOD, Harness

LEASE_SECONDS = 600.0
LONG = b'{"id": "long", "text": "' + b"x" * 100 + b'"}'
SHORT_LINES = Limits(max_line_bytes=40, max_decompressed_bytes=1 << 30)


def new_harness(**sections: Any) -> Harness:
    """A harness in which a manifest becomes a dead letter after one attempt."""
    builder = {"target_manifest_bytes": 1 << 20}
    return Harness(stream={"max_attempts": 2}, builder=builder, lease_seconds=LEASE_SECONDS, **sections)


def redrive(
    harness: Harness,
    kind: Kind,
    *manifest_ids: str,
    reason: str | None = None,
    date: str | None = None,
    dry_run: bool = False,
    with_claims: bool = True,
    on_crash_point: OnCrashPoint = ignore_crash_point,
) -> RedriveReport:
    """One redrive, in a process of its own."""
    app = harness.app(on_crash_point=on_crash_point)
    if not with_claims:
        app.claims_if_any = None
    scan = find_redrivable(app.state, Scope(kind, manifest_ids, reason, date))
    return operating.redriver(app).redrive(scan, dry_run=dry_run)


def new_ids(report: RedriveReport) -> list[str | None]:
    return [each.manifest_id for each in report.redriven]


def whys(report: RedriveReport) -> list[str]:
    return [each.why for each in report.refused]


def exhaust(harness: Harness) -> None:
    """Run until every manifest that waits is a dead letter."""
    for uri in harness.waiting() * 3:  # each alone, and the third run finds that the attempts are used up
        harness.runner(engine=FailingEngine(harness.store, ValueError("too much"))).run([uri])
    assert harness.waiting() == []


def plan(harness: Harness) -> int:
    """Plan all input; returns how many files were not planned before."""
    return finding.plan(harness.app(), "/w/raw").files


def rows_of(harness: Harness) -> Counter[str]:
    """How often each input was compacted."""
    outcomes = [harness.ledger.outcome(each) for each in harness.ledger.manifests()]
    return Counter(
        file.uri
        for outcome in outcomes
        if isinstance(outcome, Commit)
        for file in outcome.files
        if file.status is FileStatus.COMPACTED
    )


def redriven_inputs(harness: Harness, manifest_id: str) -> list[ManifestFile]:
    """All files of redriven lines in the lineage of a manifest."""
    redrive_log = RedriveLog(state=harness.app().state)
    root = redrive_log.root_of(manifest_id)
    assert root is not None
    return [file for entry in redrive_log.entries(root) for file in entry.redrive.manifest.files]


def _planned(harness: Harness, *contents: bytes) -> str:
    """The id of a planned manifest of files with these contents."""
    for number, content in enumerate(contents):
        harness.file(f"{DAY}-{number}.ndjson", content)
    plan(harness)
    [manifest_id] = [uri.rsplit("/", 1)[1].removesuffix(".json") for uri in harness.waiting()]
    return manifest_id


def dead_letter(harness: Harness) -> str:
    """The id of a planned manifest of two files that is a dead letter."""
    manifest_id = _planned(harness, GOOD, FLAWED)
    exhaust(harness)
    assert harness.dead_letter(manifest_id).reason == "retries_exhausted"
    return manifest_id


def quarantined(harness: Harness) -> str:
    """The id of a planned manifest of which one file was missing, and is back now."""
    manifest_id = _planned(harness, GOOD, FLAWED)
    harness.store.delete([f"/w/raw/{DAY}-1.ndjson"])
    harness.run_once()
    harness.file(f"{DAY}-1.ndjson", FLAWED)
    return manifest_id


def rejected(harness: Harness, *contents: bytes) -> str:
    """The id of a planned manifest whose long lines were rejected, by a limit that is higher now."""
    manifest_id = _planned(harness, *(contents or (GOOD + LONG + b"\n", LONG)))
    with line_limit(harness, SHORT_LINES.max_line_bytes):
        harness.run_once()
    assert harness.rejects()
    return manifest_id


@contextmanager
def line_limit(harness: Harness, max_line_bytes: int) -> Iterator[None]:
    """The settings have another limit for lines."""
    before = harness.settings
    section = before.input.model_copy(update={"max_line_bytes": max_line_bytes})
    harness.settings = replace(before, input=section)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fakes, "LIMITS", replace(SHORT_LINES, max_line_bytes=max_line_bytes))
        yield
    harness.settings = before


CASES: dict[Kind, Callable[[Harness], str]] = {"manifests": dead_letter, "files": quarantined, "rejects": rejected}
each_kind = pytest.mark.parametrize("kind", CASES)


def check(harness: Harness, kind: Kind) -> None:
    """Every line of all inputs is there once."""
    if kind != "rejects":
        harness.check_exact()
        assert set(rows_of(harness).values()) == {1}
        return
    rows: Counter[bytes] = Counter()
    for info in harness.store.list("/w/raw/"):
        rows.update(line for line in harness.store.read(info.uri).split(b"\n") if line)
    found = Counter(row["id"] for info in harness.store.list("/w/output/") for row in harness.table(info.uri))
    assert found == {"1": 1, "2": 1, "long": 2}
    assert rows.total() == found.total()
    # The rejects of the sources stay; nothing that was redriven was rejected again.
    assert {uri for uri, _, _ in harness.rejects()} == {f"/w/raw/{DAY}-0.ndjson", f"/w/raw/{DAY}-1.ndjson"}
    assert harness.waiting() == []
