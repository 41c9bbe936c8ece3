"""Any calls of the kernel in Rust, in any order: files that end or are withdrawn, too many keys, outputs in between."""

from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.local.native.kernel import NativeKernel
from compactor.ndjson.rawjson import texts
from compactor.schema.schema import COUNTED_KEYS, KeyLimits
from tests.support import extras
from tests.support.native_rows import ended, parquet_rows, plan_of, schema_of
from tests.support.torture_lines import GOOD_LINES

extras.NATIVE.need()

LIMITS = KeyLimits(max_new_columns=2 - COUNTED_KEYS, max_key_characters=3)
"""Two keys are collected, of three characters at most."""

SCHEMA = schema_of({"a": "string", "n": "long", "b": "boolean"}, rescued=True)
LINES = (
    *(b'{"a":"%d","n":%d}' % (at, at) for at in range(3)),
    b'{"n":"none","b":true,"a":null}',
    b'{"n":1,"n":"x","b":false,"n":2}',
    b'{"b":1,"k1":[1],"n":7}',
    b'{"a":"half a row","n":8,"k2":null,"k3":"\\u0041","too long":1}',
    b'{"k4":1,"a":"behind","k4":2,"k1":3}',
    b'{"\\u006b5":1,"n":9}',
    b"{}",
    b"",
    b"no record",
    *GOOD_LINES[:3],
)
FILES = st.lists(
    st.tuples(
        st.lists(st.lists(st.sampled_from(LINES), max_size=6), max_size=4), st.sampled_from(["end", "withdraw", "take"])
    ),
    max_size=6,
)


def row_of(line: bytes) -> dict[str, str]:
    return {key: value for key, value in texts(line).items() if value is not None}


def as_texts(rows: list[dict[str, object]]) -> list[dict[str, str]]:
    """Values of types as JSON spells them."""
    return [
        {key: str(value).lower() if key in {"n", "b"} else str(value) for key, value in row.items()} for row in rows
    ]


@given(FILES, st.booleans(), st.sampled_from([1, 60, 400, 1 << 20]))
def test_any_calls_leave_the_rows_of_the_files_that_stay(files, rescues, held_bytes):
    """A file withdrawn in the middle of a row that lacks its column leaves nothing of it, and all others are whole."""
    kernel = NativeKernel(plan_of(SCHEMA, rescues=rescues, key_limits=LIMITS, held_bytes=held_bytes))
    expected, outputs, new_keys = [], [], []
    for number, (blocks, ends_by) in enumerate(files):
        kernel.begin_file(f"file {number}")
        rows = []
        lacked = kernel.lacks_columns
        for lines in blocks:
            block = b"".join(line + b"\n" for line in lines)
            count, blank_lines, refused = kernel.read(block)
            bad = {at for at, *_ in refused}
            rows += [row_of(line) for at, line in enumerate(lines) if line and at not in bad]
            assert (count, blank_lines) == (len(lines), lines.count(b""))
        if ends_by == "withdraw" and kernel.withdraw_file():
            assert kernel.lacks_columns == lacked
            continue
        expected += rows
        found, _ = kernel.end_file()
        assert not set(found) & set(new_keys)
        new_keys += found
        if ends_by == "take":
            outputs.append(ended(kernel))
    outputs.append(ended(kernel))
    assert len(new_keys) <= 2
    assert kernel.lacks_columns == (bool(new_keys) and not rescues)
    if not kernel.lacks_columns:
        written = [row for output in outputs for row in parquet_rows(output, SCHEMA)]
        assert as_texts(written) == as_texts(expected)
