"""`data erase` killed by SIGKILL before each change of store and catalog, and repeated: no file holds the values.

Nor does a temporary file of the job that died before, in the folders or in those of scratch files.
"""

import gzip
import shutil
import signal
from pathlib import Path

import pytest

from compactor.adapters.iceberg.opening import open_catalog
from compactor.adapters.local.store import LocalStore
from compactor.core.crash_points import CrashPoint
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.ndjson.files.scratch import TEMPORARY_PREFIX
from compactor.settings.settings import load_settings
from compactor.wiring import operating
from compactor.wiring.app import App
from tests.faults.conftest import DAY, Lake
from tests.faults.nursery import Nursery
from tests.support.engines import DEFAULT
from tests.support.erasing import (
    ALICE,
    BROKEN,
    ESCAPED,
    LISTED,
    OTHERS,
    PLAIN,
    REJECTS,
    ROWS,
    holding_below,
    holding_in,
)
from tests.support.iceberg_tables import NAME, sql_place

PERSONS = {"m1": (PLAIN, ESCAPED, LISTED, BROKEN), "m2": tuple(map(gzip.compress, (PLAIN, ESCAPED, LISTED, BROKEN)))}
FEWEST_CHANGES = 50


@pytest.fixture
def erasable(lake: Lake) -> Lake:
    """A lake with a table in SQLite, whose settings have nothing else."""
    place = sql_place(lake.folder)
    lake.settings["schema"] = {"metadata_columns": ["file_date"]}
    lake.settings["table"] = {"catalog": "sql", "uri": place.uri, "warehouse": place.warehouse, "name": NAME}
    lake.write_settings()
    return lake


def scratch(lake: Lake) -> Path:
    return lake.folder / "scratch"


def fill(lake: Lake, nursery: Nursery) -> None:
    """Two manifests with a person in rows and rejects, one of them compressed, and one without, all done."""
    (lake.folder / "input").mkdir(exist_ok=True)
    for name, files in {**PERSONS, "m3": (OTHERS,)}.items():
        named = []
        for number, data in enumerate(files):
            path = lake.folder / "input" / f"{DAY}-{name}-{number}.ndjson"
            path.write_bytes(data)
            named.append(ManifestFile(uri=str(path), size_bytes=len(data)))
        manifest = Manifest(manifest_id=name, date=DAY, created_at="2025-12-21T10:00:00Z", files=tuple(named))
        folder = lake.folder / "manifests"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.json").write_bytes(manifest.to_json())
    for words, code in ((("--die-at", CrashPoint.CONVERTED), -signal.SIGKILL), ((), 0)):
        job = nursery.start(lake.config, "--scratch", str(scratch(lake)), *words)
        assert job.wait() == code, job.printed()
    (scratch(lake) / f"{TEMPORARY_PREFIX}abcd_123").mkdir()
    for left in (scratch(lake) / f"{TEMPORARY_PREFIX}abcd_123/copy", lake.state / f"{TEMPORARY_PREFIX}{'0' * 32}"):
        left.write_bytes(PLAIN)  # as a process leaves it that is killed
    assert holding_in(LocalStore(), f"{lake.folder}/")


def erase(lake: Lake, nursery: Nursery, die_at: int = 0) -> tuple[int | str, str]:
    values = lake.folder / "values.txt"
    values.write_text(ALICE)
    words = "--erase", str(values), "--die-at-change", str(die_at), "--scratch", str(scratch(lake))
    job = nursery.start(lake.config, *words)
    ended = job.wait(), job.printed()
    values.unlink()
    job.output.unlink()
    return ended


def check(lake: Lake) -> None:
    """Nothing holds the person, all others are there, in files and in the table, and all adds up."""
    assert (holding_in(LocalStore(), f"{lake.folder}/"), holding_below(lake.folder)) == ([], [])
    assert list(scratch(lake).iterdir()) == []
    app = App(load_settings(lake.config, {}))
    found = operating.verifier(app).verify_all()
    assert (found.discrepancies, found.erased_lines) == ([], 2 * (ROWS + REJECTS))
    assert found.rows + found.rejected_lines + found.blank_lines + found.erased_lines == found.lines
    table = open_catalog(sql_place(lake.folder)).load_table(NAME)
    numbers = sorted(table.scan().to_arrow()["n"].to_pylist())
    assert (numbers, len(table.snapshots())) == (["2", "2", "4", "4", "5", "5", "7", "7", "9"], 1)


def killed_and_repeated(lake: Lake, nursery: Nursery, before: Path, die_at: int) -> None:
    lake.restore(before)
    code, said = erase(lake, nursery, die_at)
    assert code == -signal.SIGKILL, said
    code, said = erase(lake, nursery)
    *left, _ = said.splitlines()
    assert code == (3 if left else 0), said
    assert all("of failed commits may contain values" in each for each in left), said  # of the one that was killed
    check(lake)


def changes(lake: Lake, nursery: Nursery, before: Path) -> int:
    """How often a whole erasure changes something, of a lake that is filled first; a copy of it is kept."""
    fill(lake, nursery)
    shutil.copytree(lake.folder, before)
    code, said = erase(lake, nursery)
    assert code == 0, said
    check(lake)
    many = int(said.split()[-2])
    assert many > FEWEST_CHANGES
    return many


@pytest.mark.full
def test_killed_in_the_middle(nursery: Nursery, erasable: Lake, tmp_path_factory: pytest.TempPathFactory) -> None:
    """At two changes, one of them of the table."""
    before = tmp_path_factory.mktemp("before") / "lake"
    many = changes(erasable, nursery, before)
    for die_at in (many // 2, many - 6):
        killed_and_repeated(erasable, nursery, before, die_at)


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("nursery", [DEFAULT], indirect=True)
def test_killed_at_every_change(nursery: Nursery, erasable: Lake, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each of them, from the record that an erasure began to the record that it ended.

    Of the rows that one engine made: an erasure itself uses the engine of the settings, whichever that was.
    """
    before = tmp_path_factory.mktemp("before") / "lake"
    for die_at in range(1, changes(erasable, nursery, before) + 1):
        killed_and_repeated(erasable, nursery, before, die_at)
