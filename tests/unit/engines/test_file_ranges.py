"""Files that grow: their new lines are ranges, which are read, verified, rebuilt and redriven as whole files are."""

from collections.abc import Callable

import pytest

from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.documents.manifest import FileRange, ManifestFile
from compactor.core.errors import FileError, ObjectChanged
from compactor.engines.engine import Engine
from compactor.ndjson.files.content_digest import digests_up_to
from compactor.ndjson.files.object_reading import open_file, reading
from compactor.wiring import engines
from tests.support import extras
from tests.support.engines import NATIVE, PLAIN
from tests.support.folders import folder_planner
from tests.support.harness import Harness
from tests.support.rebuilding import rebuild
from tests.support.redriving import line_limit, redrive

LOG = "/w/raw/app.log"
FIRST = b'{"id": "1"}\nflawed\n\n{"id": "2", "late": "x"}\n'
SECOND = b'\n{"id": "3"}\n[3]\n{"id": "4"}\n'
THIRD = b'{"id": "5"}\nflawed again\n'


@pytest.fixture(params=[PLAIN, pytest.param(NATIVE, marks=extras.NATIVE.needed)])
def run(request: pytest.FixtureRequest) -> Callable[[Harness], None]:
    """What plans all input and compacts it, on an engine."""

    def on_engine(harness: Harness) -> Engine:
        app = harness.app()
        return engines.native_engine(app, ThreadBinWorkers(app.store)) if request.param == NATIVE else harness.engine()

    def planned(harness: Harness) -> None:
        harness.clock.advance(60)
        assert folder_planner(harness).plan().left_out == []
        harness.run_once(engine=on_engine(harness))

    return planned


@pytest.fixture
def harness() -> Harness:
    return Harness(stream={"max_attempts": 2})


def reports(harness: Harness):
    """The reports on the log, the earliest first."""
    commits = [harness.ledger.outcome(key) for key in harness.ledger.manifests()]
    return sorted((file for each in commits for file in each.files if file.uri == LOG), key=lambda file: file.end_byte)


def test_the_life_of_a_range(harness: Harness, run: Callable[[Harness], None]) -> None:
    """Each line is there once, with its number in the file, after each call and after a rebuild of all manifests."""
    for content in (FIRST, FIRST + SECOND, FIRST + SECOND + THIRD):
        harness.store.put(LOG, content)
        run(harness)
        harness.check_exact()
    found = reports(harness)
    assert [each.size_bytes for each in found] == list(map(len, (FIRST, SECOND, THIRD)))
    assert [(each.lines, each.records, each.rejected_lines, each.blank_lines) for each in found] == [
        (4, 2, 1, 1),
        (4, 2, 1, 1),
        (2, 1, 1, 0),
    ]
    verified = harness.verification()
    assert (verified.lines, verified.inputs_compared, verified.inputs_gone) == (10, 3, 0)
    report = rebuild(harness, force=True)
    assert (len(report.rebuilt), report.refused, report.failed, report.discrepancies) == (3, (), (), ())
    harness.check_exact()
    run(harness)
    assert len(reports(harness)) == 3


def test_rejected_lines_of_a_range_are_redriven(harness: Harness, run: Callable[[Harness], None]) -> None:
    """They come from the rejects, with their numbers, while the file goes on growing."""
    long = FIRST + SECOND + b'{"id": "%s"}\n' % (b"x" * 100)
    with line_limit(harness, 40):
        for content in (FIRST, long):
            harness.store.put(LOG, content)
            run(harness)
    assert reports(harness)[1].rejects == {"not_an_object": 1, "line_too_long": 1}
    assert len(redrive(harness, "rejects", reason="line_too_long").redriven) == 1
    run(harness)
    harness.store.put(LOG, long + THIRD)
    run(harness)
    verified = harness.verification()
    assert (verified.discrepancies, verified.lines, verified.rows, verified.rejected_lines) == ([], 11, 6, 3)
    assert sum(harness.output_rows().values()) == 6


def part(content: bytes, start: int) -> FileRange:
    """The lines of a content from a byte on."""
    (before, _), (whole, within) = (digests_up_to([content], start, end) for end in (start, len(content)))
    return FileRange(
        continues=LOG,
        from_byte=start,
        to_byte=len(content),
        lines_before=content[:start].count(b"\n"),
        digest_before=before,
        digest=whole,
        digest_within=within,
    )


@pytest.mark.parametrize("start", [0, len(FIRST)])
@pytest.mark.parametrize(
    ("now", "found"),
    [
        (FIRST + SECOND, ""),
        (FIRST + SECOND + THIRD, ""),
        (FIRST + SECOND.replace(b"3", b"6") + THIRD, "bytes from {} on changed; expected those of the manifest"),
        (THIRD, "found version 2, expected version 1"),
    ],
)
def test_a_range_of_another_version(harness: Harness, start: int, now: bytes, found: str) -> None:
    """It is read in any version that has its bytes; whether these are the same shows at their end."""
    content = FIRST + SECOND
    harness.store.put(LOG, content)
    named = harness.named(LOG)
    harness.clock.advance(1)
    harness.store.put(LOG, now)
    file: ManifestFile = named.model_copy(update={"range": part(content, start), "size_bytes": len(content) - start})

    def read() -> bytes:
        opened = open_file(harness.store, file, any_version=start > 0)
        assert (opened.etag, opened.size_bytes) == (named.etag, len(content) - start)
        with reading(harness.store, opened) as pieces:
            return b"".join(pieces)

    if not found:
        assert read() == content[start:]
        return
    with pytest.raises((FileError, ObjectChanged), match=found.format(start)):
        read()
