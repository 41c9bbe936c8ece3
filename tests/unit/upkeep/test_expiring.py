"""What the cleaner deletes is on record first, whatever dies, is refused, or is set otherwise meanwhile."""

import pytest

from compactor.core.documents.changes import Taking, Why
from compactor.core.errors import AccessError
from compactor.core.layout import ManifestKey
from compactor.core.ports import ObjectStore
from compactor.upkeep.cleaner import ORPHAN_AGE_SECONDS, CleaningReport, Kind
from compactor.wiring import operating
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, FLAWED, DiedError, Harness
from tests.support.rebuilding import WatchedStore, rebuild
from tests.support.redriving import new_harness, redrive, rejected

DAY_SECONDS = 24 * 3600.0
M0 = ManifestKey(DAY, "m0")


def clean(
    harness: Harness, days: float = 30, rejects_days: float = 0, store: ObjectStore | None = None
) -> CleaningReport:
    return operating.cleaner(harness.app(store=store)).clean(archive_days=days, rejects_days=rejects_days)


def world(age_days: float = 31, manifests: int = 2) -> Harness:
    """Manifests with rejects, so many days after they were done."""
    harness = Harness()
    for number in range(manifests):
        harness.deliver(f"m{number}", FLAWED)
    harness.run_once()
    harness.clock.advance(age_days * DAY_SECONDS + 1)
    return harness


def records(harness: Harness) -> list[Taking]:
    listed = harness.store.list(f"{harness.layout.state}/changes/")
    return [Taking.model_validate_json(harness.store.read(info.uri)) for info in listed]


def listed(harness: Harness, folder: str) -> list[str]:
    return [info.uri for info in harness.store.list(folder)]


def test_what_expires_is_on_record() -> None:
    """By date, with the rule, and once; a second cleaning has nothing to add."""
    harness = world()
    assert clean(harness, rejects_days=31).removed == {Kind.ARCHIVED: 2, Kind.REJECTS: 2}
    found = {each.why: each for each in records(harness)}
    assert set(found) == {Why.ARCHIVE, Why.REJECTS}
    assert found[Why.ARCHIVE].words.endswith("under retention.archive_days = 30")
    assert found[Why.REJECTS].words.endswith("under retention.rejects_days = 31")
    assert all(each.manifests == {"m0": 1, "m1": 1} and each.by == "the job" for each in found.values())
    assert listed(harness, harness.layout.changing_folder) == []
    report = harness.verification()
    assert [(each.part, each.files) for each in report.expired] == [("rejects", 2)]
    assert (report.discrepancies, report.inputs_compared) == ([], 2)
    assert clean(harness, rejects_days=31).removed == {}
    assert len(records(harness)) == 2


@pytest.mark.parametrize("days", [0, 32])
def test_rejects_stay_by_the_setting(days: float) -> None:
    """They stay for ever without a setting, and until they are as old as it says."""
    harness = world()
    assert Kind.REJECTS not in clean(harness, rejects_days=days).removed
    assert len(listed(harness, harness.layout.rejects_folder)) == 2


def test_what_no_rule_took_is_missing() -> None:
    """A file that a lifecycle rule deleted, beside one that expired."""
    harness = world()
    gone = harness.commit("m1").rejects[0].final
    harness.store.delete([gone])
    clean(harness, rejects_days=31)
    report = operating.verifier(harness.app()).verify_all()
    assert [each.where for each in report.discrepancies] == [gone]
    assert sum(each.files for each in report.expired) == 1


def test_a_cleaning_that_dies_anywhere() -> None:
    """At each change: nothing is gone without its record, and the next one finishes it, whatever the settings are."""
    counted = WatchedStore((harness := world()).store)
    clean(harness, rejects_days=31, store=counted)
    for change in range(counted.changes):
        harness = world()

        def check(harness: Harness = harness) -> None:
            assert operating.verifier(harness.app()).verify_all().discrepancies == []

        with pytest.raises(DiedError):
            clean(harness, rejects_days=31, store=WatchedStore(harness.store, change, check))
        begun = listed(harness, harness.layout.changing_folder)
        clean(harness, days=90, rejects_days=90)
        assert listed(harness, harness.layout.changing_folder) == [], change
        of_rejects = [each for each in records(harness) if each.why is Why.REJECTS]
        left = listed(harness, harness.layout.rejects_folder)
        assert bool(left) != bool(of_rejects), change
        assert len(of_rejects) >= sum("rejects~" in uri for uri in begun)
        check()


def test_what_may_not_be_deleted_keeps_nothing_else() -> None:
    """The other kinds are cleaned, the error is raised, and no day adds a record; then it goes."""

    class NoDelete(FaultyStore):
        def delete(self, uris: object) -> None:
            if "/archive/" in str(uris):
                raise AccessError("archive: AccessDenied")
            super().delete(uris)  # type: ignore[arg-type]

    harness = world()
    harness.store.put(f"{harness.layout.staging_of_attempt('m0', 1)}out/0.parquet", b"x")
    harness.clock.advance(ORPHAN_AGE_SECONDS)
    for _ in range(3):
        with pytest.raises(AccessError):
            clean(harness, rejects_days=31, store=NoDelete(harness.store))
        harness.clock.advance(DAY_SECONDS)
        assert [each.why for each in records(harness)] == [Why.ARCHIVE, Why.REJECTS]
    assert listed(harness, harness.layout.staging_folder) == []
    assert listed(harness, harness.layout.rejects_folder) == []
    assert operating.verifier(harness.app()).verify_all().expiring == 1
    clean(harness, days=1000)
    assert listed(harness, harness.layout.archive_folder) == []
    assert listed(harness, harness.layout.changing_folder) == []


def test_two_cleaners_at_once() -> None:
    """Between any two changes of one, another one does everything; there is one record of each kind."""
    counted = WatchedStore((harness := world()).store)
    clean(harness, rejects_days=31, store=counted)
    for change in range(counted.changes):
        harness = world()
        store = WatchedStore(harness.store)

        def meanwhile(harness: Harness = harness, store: WatchedStore = store, change: int = change) -> None:
            if store.changes == change:
                clean(harness, rejects_days=31)

        store._on_change = meanwhile
        clean(harness, rejects_days=31, store=store)
        assert [each.why for each in records(harness)] == [Why.ARCHIVE, Why.REJECTS]
        assert listed(harness, harness.layout.changing_folder) == []
        assert harness.verification().discrepancies == []


def test_rebuilt_rejects_are_not_those_that_expired() -> None:
    """They have names of their own, so that a late deletion spares them; and they expire in their own time."""
    harness = world(manifests=1)
    before = {file.final for file in harness.commit("m0").rejects}
    clean(harness, rejects_days=31)
    harness.store.delete([file.final for file in harness.commit("m0").outputs])
    assert rebuild(harness, "m0").rebuilt
    again = {file.final for file in harness.commit("m0").rejects}
    assert again
    assert not again & before
    report = harness.verification()
    assert (report.expired, report.discrepancies) == ([], [])
    assert Kind.REJECTS not in clean(harness, rejects_days=31).removed
    harness.clock.advance(32 * DAY_SECONDS)
    assert clean(harness, rejects_days=31).removed[Kind.REJECTS] == 1
    assert harness.verification().discrepancies == []


def test_redriven_lines_that_expired() -> None:
    """`verify --deep` says so of them, and `rebuild` says why it cannot read them again."""
    harness = new_harness()
    source = rejected(harness)
    [redriven] = redrive(harness, "rejects").redriven
    harness.run_once()
    harness.clock.advance(31 * DAY_SECONDS)
    assert clean(harness).removed[Kind.REDRIVEN]
    report = harness.verification()
    assert {each.part for each in report.expired} == {"redriven"}
    assert (report.inputs_gone, report.discrepancies) == (0, [])
    harness.store.delete([file.final for file in harness.commit(f"{source}-r1").outputs])
    assert redriven.manifest_id == f"{source}-r1"
    [refused] = rebuild(harness, f"{source}-r1").refused
    assert "it expired on" in refused.why
