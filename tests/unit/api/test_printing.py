"""`print` and `repr` of each public result fit a screen, whatever it holds."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import compactor
from compactor.job.report import RunReport
from compactor.ops.verify.report import Discrepancy
from tests.support import extras
from tests.support.compacting import write

MANY = 5_000
NAMES = [f"/rows/{number}.parquet" for number in range(MANY)]


def _compacted(raw: Path) -> compactor.CompactResult:
    return compactor.compact(raw, "rows")


def _verified(raw: Path) -> compactor.VerifyResult:
    _compacted(raw)
    return compactor.verify("rows")


def _many(result: Any) -> Any:
    """The result with thousands of everything that it lists."""
    lists = {each.name: NAMES for each in fields(result) if each.name in {"outputs", "rejects", "fixes", "next_moves"}}
    if isinstance(result, compactor.VerifyResult):
        lists["discrepancies"] = [Discrepancy("m", name, "it", "none") for name in NAMES]
    if isinstance(result, compactor.CompactResult):
        lists["verified"] = _many(result.verified)
    return replace(result, **lists)


RESULTS = {
    "CompactResult": _compacted,
    "VerifyResult": _verified,
    "TraceResult": lambda raw: (_compacted(raw), compactor.trace("rows", raw / "a.ndjson"))[1],
    "BatchResult": lambda _: compactor.BatchResult(7, RunReport(failures=dict.fromkeys(NAMES, "it failed"))),
}


@extras.NATIVE.needed
@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("many", [False, True])
def test_results_fit_a_screen(name: str, many: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 24 lines of print, and one line of repr; lists show their length, and no text acts on a terminal."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()
    write(tmp_path / "raw" / "a.ndjson", b'{"id": 1}\n{"id": 2}\n')
    result = RESULTS[name](tmp_path / "raw")
    assert type(result).__name__ == name
    text, brief = str(_many(result) if many else result), repr(_many(result) if many else result)
    assert 5 < len(text.splitlines()) <= 24
    assert text.isprintable() or text.replace("\n", "").isprintable()
    assert brief.startswith(f"{name}(")
    assert len(brief) < 1_000
    assert (f"and {MANY - 3:,} more" in text) == (many or name == "BatchResult")


def test_every_public_result_is_here() -> None:
    """A new result of the package needs a case."""
    assert {name for name in compactor.__all__ if name.endswith("Result")} == set(RESULTS)
