"""A file with more rejects than are kept: quarantined with samples, or its rows kept; every line is accounted for."""

import pytest

from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.documents.records import FileStatus
from compactor.engines.engine import Engine
from compactor.wiring import engines, operating
from tests.support.engines import NATIVE, PLAIN, engines_without_spark
from tests.support.harness import Harness
from tests.support.redriving import redrive

BAD = b'{"id":"first"}\n' + b"bad\n" * 50 + b'{"id":"last"}\n\n[1]\n'
GOOD = b'{"id":"good"}\nflawed\n'
LONG = b'{"id":"%s"}\n' % (b"x" * 10_000) * 2_000
"""More than the native engine holds back, so that some of its rows are written before its rejects come."""


@pytest.fixture(params=engines_without_spark())
def engine_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def engine(harness: Harness, name: str) -> Engine:
    app = harness.app()
    return engines.native_engine(app, ThreadBinWorkers(app.store)) if name == NATIVE else harness.engine()


def new_harness(**reading: object) -> Harness:
    return Harness(reading={"max_rejected_lines": 9, **reading}, schema={"metadata_columns": ["_source_file"]})


def checked(harness: Harness):
    """The verification of everything, with the inputs."""
    app = harness.app()
    report = operating.verifier(app, deep=True).verify_all()
    assert report.discrepancies == []
    assert report.lines == report.rows + report.rejected_lines + report.blank_lines
    return report


@pytest.mark.parametrize("start", [b"", LONG], ids=["short", "long"])
def test_it_is_quarantined_with_samples_beside_good_neighbours(engine_name: str, start: bytes) -> None:
    """Its samples are in the rejects but are no lines to redrive; the whole file is, when it is better."""
    harness = new_harness()
    harness.deliver("m", GOOD, start + BAD, GOOD)
    harness.run_once(engine=engine(harness, engine_name))
    commit = harness.commit("m")
    bad = commit.files[1]
    assert [file.status for file in commit.files] == ["compacted", FileStatus.TOO_MANY_REJECTS, "compacted"]
    assert (bad.lines, bad.rejected_lines, bad.reject_rows) == (0, 0, 9)
    assert sum(file.rows for file in commit.rejects) == 9 + 2
    report = checked(harness)
    assert (report.rows, report.rejected_lines, report.quarantined_files[0].uri) == (2, 2, bad.uri)
    assert redrive(harness, "rejects").unchanged == {"invalid_json": 2}
    harness.store.put(bad.uri, b'{"id":"corrected"}\n')
    redrive(harness, "files")
    harness.run_once(engine=engine(harness, engine_name))
    assert checked(harness).rows == 3


def test_its_rows_are_kept_if_set(engine_name: str) -> None:
    """Nine rejects are kept, the others are counted by reason; only those that are kept can be redriven."""
    harness = new_harness(on_too_many_rejects="keep_rows")
    harness.deliver("m", GOOD, BAD)
    harness.run_once(engine=engine(harness, engine_name))
    bad = harness.commit("m").files[1]
    assert (bad.status, bad.lines, bad.records, bad.rejected_lines) == ("compacted", 54, 2, 51)
    assert bad.rejects == {"invalid_json": 50, "not_an_object": 1}
    assert (bad.unkept_rejects, bad.reject_rows) == ({"invalid_json": 41, "not_an_object": 1}, 9)
    report = checked(harness)
    assert (report.rows, report.rejected_lines, report.unkept_rejects) == (3, 52, 42)
    assert redrive(harness, "rejects").unchanged == {"invalid_json": 10}


def test_a_lost_line_is_found_among_those_that_are_only_counted() -> None:
    """`verify --deep` counts them again by reason."""
    harness = new_harness(on_too_many_rejects="keep_rows")
    harness.deliver("m", BAD)
    harness.run_once(engine=engine(harness, PLAIN))
    commit = harness.commit("m")
    [file] = commit.files
    wrong = file.model_copy(update={"rejects": {"invalid_json": 49, "not_an_object": 2}})
    harness.store.put(
        harness.layout.outcome(commit.key), commit.model_copy(update={"files": [wrong]}).model_dump_json().encode()
    )
    app = harness.app()
    found = operating.verifier(app, deep=True).verify_all().discrepancies
    assert [(each.where, each.expected) for each in found] == [(file.uri, "10 rejects")]
