"""What cannot be rebuilt is refused with the reason, and stays as it is; what need not be is left alone."""

from dataclasses import replace

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.core.errors import EngineFailed, StoreUnavailable
from compactor.core.layout import ManifestKey
from compactor.engines.engine import Staged, StageRequest
from compactor.ledger.accounts.reading import Scope
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.wiring import operating, rebuilding
from tests.support.fakes import FailingEngine, FaultyStore, PlainEngine
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness
from tests.support.rebuilding import rebuild, visible_rows

M1 = ManifestKey(DAY, "m1")


@pytest.fixture
def harness() -> Harness:
    """A done manifest without its first output."""
    harness = Harness()
    harness.deliver("m1", GOOD, FLAWED)
    harness.run_once()
    harness.store.delete([harness.commit("m1").outputs[0].final])
    return harness


def everything(harness: Harness) -> dict[str, bytes]:
    return {info.uri: harness.store.read(info.uri) for info in harness.store.list("/w/")}


def refused(harness: Harness, *manifest_ids: str, engine: PlainEngine | None = None) -> str:
    """Why the one manifest is refused; checks that its commit stays."""
    report = rebuild(harness, *manifest_ids, engine=engine)
    assert (report.rebuilt, report.failed) == ((), ())
    [each] = report.refused
    return each.why


def test_input_gone(harness: Harness) -> None:
    """Without its input, a manifest is refused; nothing is written."""
    harness.store.delete([f"{harness.root}/raw/m1-1.ndjson"])
    before = everything(harness)
    why = refused(harness)
    assert why.startswith("1 of 3 files lost or damaged: /w/output/")
    assert "1 of 2 input files changed or missing: /w/raw/m1-1.ndjson: missing" in why
    assert everything(harness) == before


def test_input_changed(harness: Harness) -> None:
    """Another version of an input is not read in place of the one that was compacted."""
    harness.store.put(f"{harness.root}/raw/m1-0.ndjson", GOOD)
    before = everything(harness)
    assert "now has version" in refused(harness)
    assert everything(harness) == before


def test_input_changed_meanwhile(harness: Harness) -> None:
    """An input that is replaced while it is read again does not take effect."""

    class Overtaken(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            harness.store.put("/w/raw/m1-0.ndjson", b"\n" + GOOD)
            return super().stage(request)

    assert "m1-0.ndjson: changed: " in refused(harness, engine=Overtaken(harness.store))
    assert harness.commit("m1").generation == 1
    assert [*harness.store.list(harness.layout.staging_folder), *harness.ledger.open_ids()] == []


def test_denied_input(harness: Harness) -> None:
    """Input that may not be read is a reason, not an end."""
    store = FaultyStore(harness.store)
    store.deny("/w/raw/m1-0.ndjson")
    [each] = rebuild(harness, store=store).refused
    assert "access denied" in each.why


def test_lines_read_otherwise(harness: Harness) -> None:
    """Rows that differ from those on record are refused: a line that was rejected may have been redriven since."""

    class Lenient(PlainEngine):
        def stage(self, request: StageRequest) -> Staged:
            for file in request.manifest.files:
                # As an engine that repairs lines would read it.
                harness.store.put(file.uri, harness.store.read(file.uri).replace(b"no json", b'{"x": 1}'))
            files = tuple(harness.named(file.uri) for file in request.manifest.files)
            manifest = request.manifest.model_copy(update={"files": files})
            staged = super().stage(_with(request, manifest))
            reports = zip(staged.reports, request.manifest.files, strict=True)
            same = tuple(new.model_copy(update={"etag": file.etag}) for new, file in reports)
            return Staged(same, staged.schema, staged.outputs, staged.rejects)

    why = refused(harness, engine=Lenient(harness.store))
    assert "read differently than by the first commit" in why
    assert "records 3 instead of 2" in why
    assert harness.commit("m1").generation == 1


def _with(request: StageRequest, manifest: object) -> StageRequest:
    return replace(request, manifest=manifest)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("manifest_id", "why"),
    [("none", "no record of it"), ("bad", "it is a dead letter (not_json)"), ("begun", "it has no outcome yet")],
)
def test_no_commit(harness: Harness, manifest_id: str, why: str) -> None:
    """What has no commit is refused if it is named, and no concern otherwise."""
    harness.put_manifest("bad.json", b"no json")
    harness.run_once()

    def die(found: CrashPoint, _manifest_id: str) -> None:
        if found == CrashPoint.ATTEMPTED:
            raise DiedError

    with pytest.raises(DiedError):
        harness.runner(on_crash_point=die).run([harness.deliver("begun", GOOD)])
    assert why in refused(harness, manifest_id)
    assert not rebuild(harness, dry_run=True).refused


def test_not_published_yet() -> None:
    """A committed manifest that a job is about to publish is left to it."""
    harness = Harness()

    def die(found: CrashPoint, _manifest_id: str) -> None:
        if found == CrashPoint.DECIDED:
            raise DiedError

    with pytest.raises(DiedError):
        harness.runner(on_crash_point=die).run([harness.deliver("m1", GOOD)])
    assert "not published yet" in refused(harness, "m1")
    assert rebuild(harness).rebuilt == ()
    harness.run_once()
    harness.check_exact()


def test_dry_run(harness: Harness) -> None:
    """A dry run says what would be rebuilt, and writes nothing."""
    before = everything(harness)
    [each] = rebuild(harness, dry_run=True).rebuilt
    assert (each.manifest_id, each.rows, each.generation) == ("m1", 4, 2)
    assert everything(harness) == before


def test_force(harness: Harness) -> None:
    """Files that add up are left alone, unless that is asked for: a footer does not show every damage."""
    assert len(rebuild(harness).rebuilt) == 1
    before = everything(harness)
    assert rebuild(harness, "m1").intact == 1
    assert everything(harness) == before
    [each] = rebuild(harness, "m1", force=True).rebuilt
    assert each.generation == 3
    harness.check_exact()


@pytest.mark.parametrize("error", [StoreUnavailable("away"), EngineFailed("it broke")])
def test_failure(harness: Harness, error: Exception) -> None:
    """A failure of one manifest is reported, tidied up, and does not stop the others; a later call succeeds."""
    harness.deliver("m2", GOOD)
    harness.run_once()
    harness.store.delete([harness.commit("m2").outputs[0].final])
    found = rebuild(harness, engine=FailingEngine(harness.store, error, {"m1": 1}))
    assert ([each.manifest_id for each in found.failed], [each.manifest_id for each in found.rebuilt]) == (
        ["m1"],
        ["m2"],
    )
    assert [*harness.store.list(harness.layout.staging_folder), *harness.ledger.open_ids()] == []
    rebuild(harness)
    harness.check_exact()


@pytest.mark.parametrize("lost", [False, True])
def test_decision_without_an_answer(harness: Harness, lost: bool) -> None:
    """If the write of the commit fails, or only its answer is lost, the next call goes on and nothing is missing."""

    class Store(FaultyStore):
        def create(self, uri: str, data: bytes) -> bool:
            if not uri.endswith("outcome-2.json"):
                return super().create(uri, data)
            if lost:
                super().create(uri, data)
            raise StoreUnavailable("no answer")

    assert len(rebuild(harness, store=Store(harness.store)).failed) == 1
    rebuild(harness)
    assert harness.commit("m1").generation == 2
    harness.check_exact()


def test_redriven_files_stay_out() -> None:
    """A quarantined file that is readable by now, and was redriven, is not compacted a second time."""
    harness = Harness()
    uri = f"{harness.root}/raw/late.ndjson"
    harness.store.put(uri, GOOD)
    named = harness.named(uri)
    manifest = harness.manifest("m1", [harness.file("early.ndjson", FLAWED), named])
    harness.store.delete([uri])
    harness.put_manifest("m1.json", manifest.to_json())
    harness.run_once()
    harness.store.put(uri, GOOD)
    for kind in ("files", "rejects"):
        operating.redriver(harness.app()).redrive(find_redrivable(harness.app().state, Scope(kind)))  # type: ignore[arg-type]
        harness.run_once()
    before, rejects = visible_rows(harness), harness.rejects()
    commit = harness.commit("m1")
    harness.store.delete([file.final for file in (*commit.outputs, *commit.rejects)])
    [each] = rebuild(harness).rebuilt
    assert (each.manifest_id, each.input_files) == ("m1", 1)
    assert (visible_rows(harness), harness.rejects()) == (before, rejects)
    assert harness.verification().discrepancies == []
    rebuilt = harness.commit("m1")
    assert [file.status for file in rebuilt.files] == [file.status for file in commit.files]
    assert find_redrivable(harness.app().state, Scope("files")).sources == ()


def test_limits_of_the_commit(harness: Harness) -> None:
    """The rows are made by the limits that the commit was made with, not by those of today."""
    seen = []
    app = harness.app()
    commit = app.ledger.outcome(M1)
    assert isinstance(commit, Commit)
    strict = commit.model_copy(update={"max_line_bytes": 77, "max_decompressed_bytes": 88})
    rebuilding.rebuilder(app, lambda rules: seen.append(rules) or harness.engine()).stager_for(strict)  # type: ignore[func-returns-value]
    [rules] = seen
    assert (rules.limits.max_line_bytes, rules.limits.max_decompressed_bytes) == (77, 88)
    assert rules.on_changed_file == "skip"


def test_a_dead_letter_is_no_rebuild(harness: Harness) -> None:
    """A dead letter is always of the first generation."""
    harness.put_manifest("bad.json", b"no json")
    harness.run_once()
    letter = harness.dead_letter("bad")
    assert DeadLetter.generation == 1
    assert "generation" not in letter.model_dump()
