"""What a sample of files costs: its records and its bytes are bounded, whatever the files hold."""

import pytest

from compactor.ndjson.lines import Limits
from compactor.ops import suggest as suggester
from compactor.ops.suggest import SchemaSuggester
from tests.support.memory_store import MemoryStore


def test_a_sample_of_long_lines_has_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file gives its share of the bytes, and what short ones leave over goes to those after them."""
    monkeypatch.setattr(suggester, "SAMPLE_BYTES", 10_000)
    store = MemoryStore()
    line = b'{"a": "' + b"x" * 990 + b'"}\n'
    for number, lines in enumerate([1, 1000, 1000, 1000]):
        store.put(f"/w/{number}.ndjson", line * lines)
    files = sorted(store.list("/w/"), key=lambda each: each.uri)
    limits = Limits(max_line_bytes=10_000, max_decompressed_bytes=10_000_000)
    found = SchemaSuggester(store=store, limits=limits, max_keys=10).survey("/w/", files, max_records=100_000)
    assert (len(found.read), found.unreadable) == (4, [])
    assert found.profile.records in {11, 12}
