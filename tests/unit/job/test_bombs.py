"""Small files that decode to much: a manifest of them costs no more than a few of them."""

import gzip

import pytest

from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.documents.records import FileStatus
from compactor.wiring import engines
from tests.support.engines import NATIVE, engines_without_spark
from tests.support.harness import Harness
from tests.support.redriving import redrive

MIB = 1024 * 1024
BOMB = gzip.compress(b'{"id":1}\n' + b"\n" * (MIB - 9))


@pytest.mark.parametrize("name", engines_without_spark())
def test_a_manifest_of_bombs_is_cut(name: str) -> None:
    """Files after the limit are quarantined, and a redrive compacts more of them; honest manifests have no limit."""
    harness = Harness(reading={"max_decompressed_bytes": MIB})

    def run() -> None:
        app = harness.app()
        native = engines.native_engine(app, ThreadBinWorkers(app.store)) if name == NATIVE else None
        harness.run_once(engine=native)

    harness.deliver("m", *[BOMB] * 6)
    harness.deliver("honest", *[gzip.compress(b"".join(b'{"id":"%x"}\n' % (n * 7**9) for n in range(50_000)))] * 4)
    run()
    statuses = [file.status for file in harness.commit("m").files]
    assert statuses == [FileStatus.COMPACTED] * 2 + [FileStatus.TOO_LARGE] * 4
    detail = harness.commit("m").files[-1].detail
    assert detail.startswith(f"the files before it decode to {2 * MIB:,} bytes; expected at most ")
    assert {file.status for file in harness.commit("honest").files} == {FileStatus.COMPACTED}
    redrive(harness, "files")
    run()
    assert len(harness.output_rows()) == 50_000 + 1
    assert harness.verification().rows == 4 * 50_000 + 4
