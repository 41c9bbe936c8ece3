"""Records for Spark: what has no column stands under one key, and every text stays."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from compactor.ndjson.folding import Fold
from compactor.ndjson.rawjson import texts

FOLD = Fold(frozenset(["a", "", 'q"\\']), "rescued")
VALUES = st.sampled_from([b"1.10", b"1e400", b"null", b'"x"', b'"\\u00e9\\n"', b'{"b" : [1 ,2]}', b"[]", b"true"])
KEYS = st.sampled_from([b"a", b"", b'q\\"\\\\', b"b", b"rescued", b"\\u0062", b"\\ud83d\\ude00", b"k" * 60_000])


@given(st.lists(st.lists(st.tuples(KEYS, VALUES), max_size=6), max_size=4))
def test_every_text_is_there_once(records):
    """With its own key or among the entries; the last value of a key counts, and nulls are left out."""
    lines = [b"{" + b",".join(b'"%s": %s' % field for field in fields) + b"}" for fields in records]
    block = b"".join(line + b"\n" for line in lines)
    folded = FOLD.lines(block).split(b"\n")
    assert folded.pop() == b""
    for line, written in zip(lines, folded, strict=True):
        expected = texts(line)
        if expected.keys() <= FOLD.columns:
            assert written == line
            continue
        found = texts(written)
        entries = orjson.loads(found.pop(FOLD.name) or b"")
        assert found.keys() <= FOLD.columns
        rescued = {entry["key"]: entry["value"] for entry in entries}
        assert len(rescued) == len(entries)
        assert not rescued.keys() & FOLD.columns
        assert {**found, **rescued} == {key: text for key, text in expected.items() if text is not None}
