"""Planning from an S3 Inventory: each object once, whatever dies, is replaced, or was planned by others meanwhile."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from compactor.core.crash_points import (
    CrashPoint,
    OnCrashPoint,
    PlanCrashPoint,
    ignore_crash_point,
)
from compactor.core.documents.manifest import Manifest
from compactor.core.errors import InventoryError, SettingsError
from compactor.settings import sections
from compactor.sources.input_files import EVERYTHING, FileScope
from compactor.sources.inventory.planning import Rate, prefixes_to_plan
from compactor.sources.inventory.reading import InventoryReader
from compactor.sources.inventory.rows import files_in_scope
from compactor.sources.plan import Plan
from compactor.sources.planner import Gate
from compactor.wiring import finding
from tests.support.harness import Harness, one_at_a_time
from tests.support.interleaving import interleave
from tests.support.inventories import ALL_VERSIONS, BUCKET, FORMATS, MANIFEST, put_inventory, row

LINE = b'{"id": "1"}\n'
LEASE_SECONDS = 600.0
DAYS = ("2025-12-30", "2025-12-31", "2026-01-01")
UNLIMITED = Rate(is_paced=False)


def lake(per_day: int = 3, **settings: Any) -> Harness:
    """A lake on S3 with some files a day, which wait to be planned; two fill a manifest."""
    builder = {"target_manifest_bytes": 2 * len(LINE)}
    harness = Harness(root=f"s3://{BUCKET}", builder=builder, lease_seconds=LEASE_SECONDS, **settings)
    for day in DAYS:
        for number in range(per_day):
            harness.store.put(f"s3://{BUCKET}/raw/{day}-{number}.ndjson", LINE)
    return harness


def listed(harness: Harness, folder: str = "raw/") -> list[dict[str, Any]]:
    """The rows of an inventory of what is there."""
    bucket = f"s3://{BUCKET}/"
    return [
        row(info.uri.removeprefix(bucket), info.size_bytes, info.etag, modified_at=info.modified_at)
        for info in harness.store.list(bucket + folder)
    ]


def plan(
    harness: Harness,
    *,
    scope: FileScope = EVERYTHING,
    prefix: str | None = None,
    on_crash_point: OnCrashPoint = ignore_crash_point,
    page_files: int = 2,
    target_bytes: float = 0,
    rate: Rate = UNLIMITED,
    gate: Gate | None = None,
    sleep: Callable[[float], None] | None = None,
    **options: Any,
) -> Plan:
    """One call of the command, in a process of its own, that writes one manifest after the other."""
    app = harness.app(on_crash_point=on_crash_point)
    using = replace(one_at_a_time(app), page_files=page_files)
    if target_bytes:
        using = replace(using, target_bytes=lambda: target_bytes)
    reader = InventoryReader(harness.store)
    inventory = reader.open(MANIFEST)
    prefixes = prefixes_to_plan(app.state, app.settings.input.allowed_prefixes, inventory, prefix)
    found = partial(files_in_scope, inventory, reader.rows(inventory), prefixes, scope, app.state.rules)
    sleep = sleep or harness.clock.advance
    with pytest.MonkeyPatch.context() as patch:
        if gate is not None:
            patch.setattr("compactor.wiring.finding.gate_of", lambda *_: gate)
        return finding.plan_inventory(app, found, rate, on_wait=lambda _why: None, sleep=sleep, using=using, **options)


def manifests(harness: Harness) -> list[Manifest]:
    return [Manifest.model_validate_json(harness.store.read(uri)) for uri in harness.waiting()]


def planned(harness: Harness) -> Counter[str]:
    """How often each file is named by a waiting manifest."""
    return Counter(file.uri for each in manifests(harness) for file in each.files)


def all_inputs(harness: Harness) -> Counter[str]:
    return Counter(info.uri for info in harness.store.list(f"s3://{BUCKET}/raw/"))


def deliver(harness: Harness, manifest_id: str, date: str, uris: Sequence[str]) -> None:
    """A manifest that another system wrote, without claims."""
    manifest = harness.manifest(manifest_id, [harness.named(uri) for uri in uris])
    harness.put_manifest(f"{manifest_id}.json", manifest.model_copy(update={"date": date}).to_json())


@pytest.mark.parametrize("file_format", FORMATS)
def test_every_object_once(file_format: str) -> None:
    """All objects of the inventory are planned with their versions, by date; a second call finds nothing to do."""
    harness = lake()
    put_inventory(harness.store, listed(harness)[::-1], file_format=file_format, data_files=2)
    first = plan(harness)
    assert [(each.date, each.files) for each in first.manifests] == [(day, n) for day in DAYS for n in (2, 1)]
    assert planned(harness) == all_inputs(harness)
    etags = {info.uri: info.etag for info in harness.store.list(f"s3://{BUCKET}/raw/")}
    assert {file.uri: file.etag for each in manifests(harness) for file in each.files} == etags
    assert [(each.rule, each.files, each.days) for each in first.dated] == [("name", 9, 3)]
    second = plan(harness)
    assert (second.manifests, second.planned_before, second.skipped) == ([], 9, {})
    harness.run_once()
    assert plan(harness).planned_before == 9
    harness.check_exact()


def test_a_dry_run_writes_nothing() -> None:
    """A dry run says what would be planned, and neither claims nor writes."""
    harness = lake()
    put_inventory(harness.store, listed(harness))
    offered = plan(harness, dry_run=True)
    assert [(each.manifest_id, each.files) for each in offered.manifests] == [(None, 2), (None, 1)] * 3
    assert (planned(harness), plan(harness).files) == (Counter(), 9)


def test_manifests_are_as_large_as_those_of_a_listing() -> None:
    """What does not fill a manifest at the end of a page goes on with the next one."""
    harness = lake(per_day=7)
    put_inventory(harness.store, listed(harness))
    assert [each.files for each in plan(harness, page_files=3).manifests] == [2, 2, 2, 1] * 3


def test_what_is_no_file() -> None:
    """Folders, empty and archived objects, markers, old versions and other prefixes are counted by reason."""
    harness, more = lake(), {"IsLatest": True, "IsDeleteMarker": False}
    rows = [each | more for each in listed(harness)]
    rows += [
        row("raw/folder/", 0, **more),
        row("raw/empty.ndjson", 0, **more),
        row("raw/_SUCCESS", **more),
        row("raw/_hidden.ndjson", **more),
        row("raw/.hive-staging_1/0", **more),
        row("raw/../up.ndjson", **more),
        row("raw-other/a.ndjson", **more),
        row("output/x.parquet", **more),
        row("raw/old.ndjson", **{**more, "IsLatest": False}),
        row("raw/gone.ndjson") | {**more, "IsDeleteMarker": True, "Size": None, "ETag": None},
        row("raw/cold.ndjson", StorageClass="DEEP_ARCHIVE", **more),
        row("raw/cold2.ndjson", StorageClass="INTELLIGENT_TIERING", IntelligentTieringAccessTier="ARCHIVE", **more),
        row("raw/2025-12-30-0.ndjson", etag="earlier", modified_at=datetime(2025, 1, 1, tzinfo=UTC), **more),
    ]
    put_inventory(harness.store, rows, columns=ALL_VERSIONS)
    made = plan(harness)
    assert planned(harness) == all_inputs(harness)
    assert made.skipped == {
        "folder_marker": 1, "empty": 1, "job_marker": 1, "bad_name": 1, "other_prefix": 2, "old_version": 1,
        "delete_marker": 1, "archived": 2, "repeated": 1, "hidden": 2,
    }  # fmt: skip
    assert "hidden" not in plan(harness, scope=FileScope(hidden=True), dry_run=True).skipped


def test_scope() -> None:
    """Prefix, date and time limit what is planned, as for a listing."""
    harness = lake()
    harness.store.put(f"s3://{BUCKET}/raw/eu/2026-01-01-9.ndjson", LINE)
    rows = [*listed(harness), row("raw/eu/2026-01-01-8.ndjson", modified_at=datetime(2025, 12, 25, tzinfo=UTC))]
    put_inventory(harness.store, rows)
    since = datetime(2026, 1, 1, tzinfo=UTC)
    made = plan(harness, scope=FileScope(date="2026-01-01", since=since), dry_run=True)
    assert (made.files, made.skipped) == (4, {"other_date": 6, "too_old": 1})
    made = plan(harness, scope=FileScope(since=since), prefix=f"s3://{BUCKET}/raw/eu/")
    assert (made.files, made.skipped) == (1, {"other_prefix": 9, "too_old": 1})


def test_an_inventory_of_other_things() -> None:
    """An inventory without any object of the prefix, or of another bucket, is refused with what it lists."""
    harness = lake()
    put_inventory(harness.store, [row("other/a"), row("other/b")])
    with pytest.raises(InventoryError, match=r"lists 2 objects, but none in s3://lake/raw/; expected"):
        plan(harness)
    put_inventory(harness.store, [row("raw/a")], sourceBucket="elsewhere")
    with pytest.raises(SettingsError, match=r"lists s3://elsewhere -> expected input\.allowed_prefixes in it"):
        plan(harness)
    inventory = InventoryReader(harness.store).open(MANIFEST)
    with pytest.raises(SettingsError, match=r"expected a folder within input\.allowed_prefixes"):
        prefixes_to_plan(
            harness.app().state, harness.settings.input.allowed_prefixes, inventory, f"s3://{BUCKET}/other"
        )


def test_any_version_of_a_file() -> None:
    """Where the job reads any version, a replaced file could be compacted twice, so it is refused."""
    harness = lake(reading={"on_changed_file": "read"})
    put_inventory(harness.store, listed(harness))
    with pytest.raises(SettingsError, match='on_changed_file: "read" -> expected "skip"'):
        plan(harness)


@pytest.mark.parametrize("gone", [1, 9])
def test_objects_that_went_since(gone: int) -> None:
    """What was deleted or replaced since the inventory is left out, if a check meets one of them."""
    harness = lake()
    put_inventory(harness.store, listed(harness))
    doomed = sorted(all_inputs(harness))[:gone]
    harness.store.delete(doomed)
    harness.store.put(doomed[0], b'{"id": "2"}\n\n')
    made = plan(harness)
    assert planned(harness) == all_inputs(harness) - Counter(doomed)
    assert made.skipped == {"replaced": 1} | ({"gone": gone - 1} if gone > 1 else {})


def test_a_file_replaced_unseen_is_not_doubled() -> None:
    """The inventory's version is claimed and read: the new one is the business of its event."""
    harness = lake(per_day=8)
    put_inventory(harness.store, listed(harness))
    harness.store.put(f"s3://{BUCKET}/raw/{DAYS[0]}-1.ndjson", b'{"id": "2"}\n')
    plan(harness, target_bytes=100 * len(LINE))
    assert planned(harness) == all_inputs(harness)  # it is none of those that are checked
    harness.run_once()
    finding.plan(harness.app(), f"s3://{BUCKET}/raw")
    harness.run_once()
    harness.check_exact()


@pytest.mark.parametrize("step", [PlanCrashPoint.CLAIMED, PlanCrashPoint.PLANNED, PlanCrashPoint.BOUND])
@pytest.mark.parametrize("occurrence", [1, 4, 6])
def test_death_and_delay_at_every_step(step: PlanCrashPoint, occurrence: int) -> None:
    """The next call goes on at once, waits for the lease of what the first one claimed, and doubles nothing."""

    def world() -> Harness:
        made = lake()
        put_inventory(made.store, listed(made))
        return made

    def others(made: Harness) -> None:
        began = made.clock.now()
        assert plan(made).held == 0
        waited = (made.clock.now() - began).total_seconds()
        assert waited == 0 or (waited >= LEASE_SECONDS and step is PlanCrashPoint.CLAIMED)
        assert planned(made) == all_inputs(made)

    def process(made: Harness, on_crash_point: OnCrashPoint) -> None:
        plan(made, on_crash_point=on_crash_point)

    def check(made: Harness) -> None:
        made.run_once()
        made.check_exact()

    interleave(step, world, process, others, check, occurrence=occurrence)


def test_manifests_without_claims() -> None:
    """Files in manifests of others, or whose claims expired, are not planned, also if these are compacted already."""
    harness = lake()
    put_inventory(harness.store, listed(harness))
    files = sorted(all_inputs(harness))
    deliver(harness, "foreign-1", DAYS[0], files[:2])
    harness.run_once()
    deliver(harness, "foreign-2", "2026-01-05", files[4:6])
    made = plan(harness)
    assert (made.planned_before, planned(harness)) == (4, all_inputs(harness) - Counter(files[:2]))


def test_manifest_that_arrives_meanwhile() -> None:
    """A manifest of others that comes long after the begin is seen before its files are planned."""
    harness = lake()
    put_inventory(harness.store, listed(harness))
    last = sorted(all_inputs(harness))[-3:]

    def come(found: CrashPoint, _manifest_id: str) -> None:
        if found == PlanCrashPoint.PLANNED and not any("foreign" in uri for uri in harness.waiting()):
            deliver(harness, "foreign", DAYS[-1], last)
            harness.clock.advance(3600)

    plan(harness, on_crash_point=come)
    assert planned(harness) == all_inputs(harness)


def test_manifest_that_arrives_while_others_are_held_back() -> None:
    """Files that were in no manifest when they were grouped are checked again when their manifest is written."""
    harness = lake(per_day=9)
    put_inventory(harness.store, listed(harness))
    last = sorted(all_inputs(harness))[7:9]

    def one_at_a_time(_most: int) -> int:
        if len(harness.waiting()) == 2:
            deliver(harness, "foreign", "2026-01-02", last)
            harness.clock.advance(3600)
        return 1

    assert plan(harness, gate=one_at_a_time, page_files=1000).planned_before == 2
    assert planned(harness) == all_inputs(harness)


def test_bound_of_manifests() -> None:
    """A bound leaves the rest to the next call, and says how much that is."""
    harness = lake()
    put_inventory(harness.store, listed(harness))
    made = plan(harness, limit=2)
    assert (len(made.manifests), made.left_files, made.left_manifests, made.stalled) == (2, 6, 4, False)
    rest = plan(harness, limit=4)
    assert (rest.planned_before, len(rest.manifests), rest.left_files) == (3, 4, 0)
    assert planned(harness) == all_inputs(harness)


def test_beside_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifests are released as the job takes them, and all of them in the end, also at a rate."""
    monkeypatch.setattr(sections, "MANIFESTS_FOR_A_SLOT", 2)
    harness = lake(stream={"manifests_in_flight": 1})
    put_inventory(harness.store, listed(harness))
    waited: list[int] = []

    def work(seconds: float) -> None:
        waited.append(len(harness.waiting()))
        harness.run_once()
        harness.clock.advance(seconds)

    rate = Rate(per_hour=60)
    began = harness.clock.now()
    made = plan(harness, rate=rate, sleep=work)
    assert (made.files, made.stalled, max(waited)) == (9, False, 1)
    assert len(made.manifests) - 1 <= (harness.clock.now() - began).total_seconds() / 60 <= len(made.manifests)
    harness.run_once()
    harness.check_exact()


def test_without_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends when the job finishes nothing for long, says what is left, and the next call goes on."""
    monkeypatch.setattr(sections, "MANIFESTS_FOR_A_SLOT", 2)
    harness = lake(stream={"manifests_in_flight": 1})
    put_inventory(harness.store, listed(harness))

    def call() -> Plan:
        return plan(harness, rate=Rate())

    made = call()
    assert (made.stalled, made.files, made.left_files, made.left_manifests) == (True, 5, 4, 3)
    assert (call().files, call().left_files) == (0, 4)
    harness.run_once()
    assert (call().stalled, planned(harness).total()) == (False, 4)


def test_events_and_inventory_at_once() -> None:
    """An inventory spells versions as events do, so a file that a builder claimed is not planned again."""
    harness = lake()
    put_inventory(harness.store, listed(harness))
    finding.plan(harness.app(), f"s3://{BUCKET}/raw", FileScope(date=DAYS[1]))
    assert plan(harness).planned_before == 3
    assert planned(harness) == all_inputs(harness)


def test_days_by_arrival() -> None:
    """Objects without a date in their names have the day of their last write; impossible dates are counted."""
    harness = lake(per_day=0)
    at = datetime(2025, 5, 6, 7, tzinfo=UTC)
    keys = ["raw/a.ndjson", "raw/2199-01-01.ndjson"]
    for key in keys:
        harness.store.put(f"s3://{BUCKET}/{key}", LINE)
    put_inventory(harness.store, [each | {"LastModifiedDate": at} for each in listed(harness)])
    made = plan(harness)
    assert [each.date for each in made.manifests] == ["2025-05-06"]
    assert (made.misdated, made.first_misdated) == (1, f"s3://{BUCKET}/raw/2199-01-01.ndjson")
