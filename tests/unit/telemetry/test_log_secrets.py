"""No word of a line gets into the log, the records or what a command says, however the line is broken."""

import gzip
import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.adapters.local.native.kernel import NativeKernel
from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.errors import CompactorError, StagingError
from compactor.core.layout import base_name
from compactor.engines.engine import Engine
from compactor.engines.native.bin_task import BinTask, write_bin
from compactor.engines.native.kernel import RefusedPlace
from compactor.job.results import log_result
from compactor.telemetry.logs import LOGGER, configure_logs
from compactor.wiring import engines, streaming
from tests.support import extras
from tests.support.engines import PLAIN, WITHOUT_SPARK
from tests.support.fakes import FailingEngine
from tests.support.harness import Harness
from tests.support.sampling import few

CARD = "4111-1111-1111-1111"

LINES = [
    b'{"id": "1", "card": "%s"}',
    b'{"id": 2, "card": %s}',
    b'{"card": "%s"',
    b"%s",
    b'["%s"]',
    b'{"card": "%s"} trailing',
    b"{'card': '%s'}",
    b'{"card": "\xff%s"}',
    b'{"card": "\\ud800%s"}',
    b'{"card": "%s", "card": "%s"}',
    b'{"n": "%s", "day": "%s"}',
]
DATA = b"\n".join(line.replace(b"%s", CARD.encode()) for line in LINES) + b"\n"

TYPES = '[[columns]]\nname = "n"\ntype = "long"\n[[columns]]\nname = "day"\ntype = "date"\n'

RAISED = {
    "value": ValueError(f"invalid literal for int() with base 10: '{CARD}'"),
    "key": KeyError(CARD),
    "arrow": pa.ArrowInvalid(f"Could not convert '{CARD}' with type str: tried to convert to int64"),
    "json": json.JSONDecodeError(f"Expecting value near {CARD}", DATA.decode(errors="replace"), 0),
}
"""What engines, libraries and bugs raise, with what they choked on."""


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """All that is logged."""
    before = LOGGER.handlers[:], LOGGER.level, LOGGER.propagate
    stream = io.StringIO()
    configure_logs(as_json=True, level="debug", stream=stream)
    yield stream
    LOGGER.handlers[:], LOGGER.propagate = before[0], before[2]
    LOGGER.setLevel(before[1])


def run(harness: Harness, engine: Engine) -> str:
    """Do all there is, as often as it takes; returns what the run said of it."""
    app = harness.app()
    app.on_result = log_result
    try:
        report = streaming.service_on(app, engine, ListedManifests(harness.store, harness.layout.manifests_folder)).run(
            once=True
        )
    except CompactorError as exc:
        return str(exc)
    return repr((report.failures, report.stuck))


def records(harness: Harness) -> str:
    """All objects of the state but those that are there to keep bytes: rejects, staged ones, and an odd manifest."""
    held = [harness.layout.rejects_folder, harness.layout.staging_folder, harness.layout.failed_manifest("line")]
    uris = [info.uri for info in harness.store.list(f"{harness.root}/state/")]
    kept = [uri for uri in uris if not uri.startswith(tuple(held)) and base_name(uri).endswith(".json")]
    return "\n".join(harness.store.read(uri).decode(errors="replace") for uri in kept)


def engine_of(name: str, harness: Harness) -> Engine:
    if name == PLAIN:
        return harness.engine()
    extras.NATIVE.need()
    return engines.native_engine(harness.app(), ThreadBinWorkers(harness.store))


@pytest.mark.parametrize("name", WITHOUT_SPARK)
def test_bad_lines_are_told_by_their_reason_alone(name: str, log: io.StringIO) -> None:
    """Lines that are broken in every way leave their reasons and counts behind; their bytes are in the rejects."""
    types = {"schema": {"file": "/w/columns.toml"}} if name != PLAIN else {}
    harness = Harness(**types)
    if types:
        harness.store.put("/w/columns.toml", TYPES.encode())
    cut = gzip.compress(DATA)[:-9]
    harness.deliver("m", DATA, cut, DATA.replace(b"\n", b""))
    harness.put_manifest("line.json", DATA.splitlines()[0])
    said = run(harness, engine_of(name, harness))
    logged = log.getvalue()
    assert "manifest.committed" in logged, said
    assert "manifest.dead_lettered" in logged
    assert any(CARD.encode() in raw for _, _, raw in harness.rejects())
    for text in (said, logged, records(harness)):
        assert CARD not in text


@pytest.mark.parametrize("error", few(RAISED.values(), 2), ids=RAISED)
def test_errors_that_quote_a_line(error: Exception, log: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a library or a bug says of a value is cut: in the log, the ledger, and what the run ends with."""
    monkeypatch.setattr("compactor.job.service.ONCE_SECONDS", 0.2)
    harness = Harness()
    for number in range(3):
        harness.deliver(f"m{number}", DATA)
    said = [run(harness, FailingEngine(harness.store, error)) for _ in range(2)]
    logged = log.getvalue()
    assert logged.count('"manifest.failed"') > 3
    assert type(error).__name__ in logged
    for text in (*said, logged, records(harness)):
        assert CARD not in text


def test_a_kernel_that_refuses_a_record_does_not_quote_it() -> None:
    """Where the two scanners disagree the line is named by its place."""
    extras.NATIVE.need()

    class Wrong(NativeKernel):
        def read(self, block: bytes) -> tuple[int, int, list[RefusedPlace]]:
            lines, blank_lines, _ = super().read(block)
            return lines, blank_lines, [(0, 0, block.index(b"\n"), "")]

    class Workers(ThreadBinWorkers):
        def write_bins(self, _manifest_id: str, tasks: Any) -> Any:
            return [write_bin(harness.store, task, Wrong) for task in tasks if isinstance(task, BinTask)]

    harness = Harness()
    harness.deliver("m", DATA)
    batch = harness.runner(engine=engines.native_engine(harness.app(), Workers(harness.store))).run(harness.waiting())
    error = batch.failures["m"]
    assert isinstance(error, StagingError)
    assert "refused a record:" in str(error)
    assert CARD not in str(error)
