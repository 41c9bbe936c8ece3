"""The removal of files that were merged, killed by SIGKILL before each change of store and catalog, and repeated."""

import os
import shutil
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from compactor.adapters.iceberg.opening import open_catalog
from compactor.settings.settings import load_settings
from compactor.wiring import operating, table_sink
from compactor.wiring.app import App
from tests.faults.conftest import Lake
from tests.faults.nursery import Nursery
from tests.faults.tally import TALLY, Case, Kind
from tests.support.engines import DEFAULT
from tests.support.iceberg_tables import NAME, sql_place

FREE, YOUNG, ALONE = "2025-12-21", "2025-12-22", "2025-12-23"
"""Dates whose files were merged two days ago, were merged just now, and were not merged."""

MANIFESTS = {"free-1": FREE, "free-2": FREE, "free-3": FREE, "young-1": YOUNG, "young-2": YOUNG, "alone": ALONE}
TWO_DAYS = 2 * 86_400


@dataclass
class Removal:
    """A lake with files that may go and files that may not; and copies of how it was before any went."""

    lake: Lake
    nursery: Nursery
    before: Path
    free: list[Path]
    kept: list[Path]

    @property
    def app(self) -> App:
        return App(load_settings(self.lake.config, {}))

    def maintain(self, die_at: int = 0) -> tuple[int | str, list[str]]:
        """The upkeep in a process of its own: how it ended, and the changes that it made."""
        job = self.nursery.start(self.lake.config, "--maintain", "--die-at-change", str(die_at))
        return job.wait(), job.printed().splitlines()

    def whole(self) -> list[str]:
        """The changes of a removal that no one disturbs."""
        code, changes = self.maintain()
        assert code == 0, changes
        self.check_end(TALLY.case(Kind.SINGLE))
        return changes

    def killed_before(self, change: int, meanwhile: str = "") -> None:
        """Kill it before a change, let a job go on meanwhile if asked, and then repeat it."""
        self.lake.restore(self.before)
        case, lines = TALLY.case(Kind.SINGLE), list(self.lake.lines)
        code, said = self.maintain(change)
        assert code == -signal.SIGKILL, said
        case.died += 1
        self.check(case)
        if meanwhile == "job":
            self.lake.add_manifest("later", files=1, date=FREE)
            run(self.nursery, self.lake)
            self.check(case)
            self.kept += files_of(self.lake, "later")
        code, said = self.maintain()
        assert code == 0, said
        self.check_end(case)
        if meanwhile == "job":
            self.kept = [path for path in self.kept if "later" not in path.name]
            self.lake.lines[:] = lines

    def check(self, case: Case) -> None:
        """At any time: the table has each row once, and each file that it or a manifest needs is there."""
        app = self.app
        table = open_catalog(sql_place(self.lake.folder)).load_table(NAME)
        found = Counter(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())
        expected = Counter(line.split('"')[3] for line in self.lake.lines)
        case.lines += expected.total()
        case.lost += (expected - found).total()
        case.doubled += (found - expected).total()
        assert found == expected
        report = table_sink.table_keeper(app).compare()
        assert (report.missing, report.surplus, report.doubled, report.differing) == ([], [], [], [])
        verified = operating.verifier(app, deep=True).verify_all()
        assert (verified.discrepancies, verified.unfinished) == ([], 0)
        assert [path for path in self.kept if not path.exists()] == []

    def check_end(self, case: Case) -> None:
        """Afterwards: what may go is gone, nothing is left to be done, and a lost table is the same again."""
        self.check(case)
        assert [path for path in self.free if path.exists()] == []
        assert list((self.lake.state / "changing").glob("*.json")) == []
        assert table_sink.maintainer(self.app, 0, 1).maintain().removed_originals == 0
        open_catalog(sql_place(self.lake.folder)).drop_table(NAME)
        table_sink.table_keeper(self.app).repair()
        self.check(case)


def run(nursery: Nursery, lake: Lake) -> None:
    job = nursery.start(lake.config)
    assert job.wait() == 0, job.printed()


def files_of(lake: Lake, name: str) -> list[Path]:
    """The files of rows of some manifests, merged files aside."""
    return [path for path in (lake.folder / "output").rglob(f"{name}*.parquet") if "_table" not in path.parts]


@pytest.fixture
def removal(nursery: Nursery, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Removal:
    """A table in SQLite with merged files whose parts may go, with some whose parts may not, and with a lone file."""
    place = sql_place(lake.folder)
    lake.settings["schema"] = {"metadata_columns": ["file_date"]}
    lake.settings["table"] = {
        "catalog": "sql",
        "uri": place.uri,
        "warehouse": place.warehouse,
        "name": NAME,
        "merged_originals": "remove",
    }
    lake.write_settings()
    for name, day in MANIFESTS.items():
        lake.add_manifest(name, files=1, lines=4, date=day)
    run(nursery, lake)
    app = App(load_settings(lake.config, {}))
    for dates in ([FREE], [YOUNG]):
        assert table_sink.merger(app).merge(dates=dates).made_files == 1
        if dates == [FREE]:
            [merged] = (lake.folder / "output" / "_table" / "merged").glob("*.parquet")
            long_ago = time.time() - TWO_DAYS
            os.utime(merged, (long_ago, long_ago))
    before = tmp_path_factory.mktemp("before") / "lake"
    shutil.copytree(lake.folder, before)
    free, kept = files_of(lake, "free"), [*files_of(lake, "young"), *files_of(lake, "alone")]
    assert (len(free) >= 3, len(kept) >= 3) == (True, True)
    return Removal(lake, nursery, before, free, kept)


@pytest.mark.full
def test_killed_amid_a_removal(removal: Removal) -> None:
    """Once some of the files are gone, and others are not."""
    changes = removal.whole()
    files = {f"delete {path}" for path in removal.free}
    deleted = [number for number, each in enumerate(changes, 1) if each in files]
    assert len(deleted) == len(removal.free)
    removal.killed_before(deleted[1])


@pytest.mark.faults
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("nursery", [DEFAULT], indirect=True)
@pytest.mark.parametrize("meanwhile", ["", "job"])
def test_killed_at_every_change(removal: Removal, meanwhile: str) -> None:
    """Of the whole upkeep, from what expires to the last record; a job may commit before it is repeated.

    Of the rows that one engine made: a removal uses none.
    """
    changes = removal.whole()
    for change in range(1, len(changes) + 1):
        removal.killed_before(change, meanwhile)
