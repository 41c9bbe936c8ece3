"""What the tests of `data expire` share: closed dates, and what readers may miss of them."""

from datetime import date, timedelta

from compactor.core.crash_points import OnCrashPoint, ignore_crash_point
from compactor.core.documents.manifest import ManifestFile
from compactor.core.layout import is_data
from compactor.core.ports import ObjectStore
from compactor.ops import expire as dates
from compactor.ops.expire import ExpireReport
from compactor.wiring import operating
from tests.support.harness import DAY, FLAWED, GOOD, Harness
from tests.support.histories import HOUR_SECONDS, QUIET_HOURS, closed

NEXT_DAY = (date.fromisoformat(DAY) + timedelta(days=1)).isoformat()
LATER_DAY = (date.fromisoformat(DAY) + timedelta(days=2)).isoformat()


def compacted(harness: Harness, manifest_id: str, day: str = DAY, files: list[ManifestFile] | None = None) -> None:
    """Bring a manifest of two files, one of them with bad lines, or of the given ones, to done."""
    files = files or [harness.file(f"{manifest_id}-{part}.ndjson", each) for part, each in enumerate((GOOD, FLAWED))]
    manifest = harness.manifest(manifest_id, files).model_copy(update={"date": day})
    harness.put_manifest(f"{manifest_id}.json", manifest.to_json())
    harness.run_once()


def wait_and_close(harness: Harness) -> None:
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    closed(harness)


def closed_days() -> Harness:
    """Two manifests of a day and one of the next day, both closed."""
    harness = Harness()
    compacted(harness, "m1")
    compacted(harness, "m2")
    compacted(harness, "m3", NEXT_DAY)
    wait_and_close(harness)
    return harness


def expire(
    harness: Harness,
    before: str = NEXT_DAY,
    *,
    store: ObjectStore | None = None,
    dry_run: bool = False,
    with_unsettled: bool = False,
    on_crash_point: OnCrashPoint = ignore_crash_point,
) -> ExpireReport:
    """One call, in a process of its own."""
    app = harness.app(store=store, on_crash_point=on_crash_point)
    found = dates.find_expirable(app.state, before, with_unsettled=with_unsettled)
    expirer = operating.date_expirer(app, "ann@desk")
    return found if dry_run else dates.expire_dates(expirer, found)


def files_of(harness: Harness, day: str) -> list[str]:
    """Output, rejects and archived manifests of a day."""
    layout = harness.layout
    places = (layout.output_folder_of(day), layout.rejects_folder_of(day), layout.archive_folder_of(day))
    return [info.uri for place in places for info in harness.store.list(place) if is_data(info.uri)]
