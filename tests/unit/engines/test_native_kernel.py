"""The kernel in Rust: it accepts the lines that inspection accepts, with the same values."""

import io
import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.local.native.kernel import NativeKernel
from compactor.adapters.local.native.module import INTERFACE, is_installed
from compactor.core.errors import StagingError
from compactor.schema.schema import COUNTED_KEYS, METADATA_COLUMNS, KeyLimits
from tests.support import extras
from tests.support.native_rows import NOW, by_inspection, by_kernel, ended, feed, parquet_rows, plan_of, schema_of
from tests.support.parquet_ids import field_ids
from tests.support.row_sums import check_sums
from tests.support.torture_lines import BAD_LINES, DEEP_LINES, FRAGMENTS, GOOD_LINES, LONG_KEY_LINES, mutated

extras.NATIVE.need()

SOUP = st.one_of(st.binary(max_size=60), st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(b"".join))


FEW_AND_SHORT = KeyLimits(max_new_columns=1 - COUNTED_KEYS, max_key_characters=2)
"""One key of at most two characters is collected."""


def check(data: bytes, *, block_bytes: int = 1 << 20) -> None:
    """Whether all of a file is taken as inspection takes it: what is found, and the rows with all columns."""
    expected = by_inspection(data)
    found = by_kernel(data, schema_of({}), block_bytes=block_bytes)
    assert found.rejects == expected.rejects
    assert found.keys == expected.keys
    assert found.records == expected.records
    if expected.keys:
        schema = schema_of(dict.fromkeys(expected.keys, "string"))
        assert by_kernel(data, schema, block_bytes=block_bytes).rows == expected.rows
    few = by_inspection(data, known_keys=frozenset(["id"]), key_limits=FEW_AND_SHORT)
    schema = schema_of({"id": "string"}, rescued=True)
    rescued = by_kernel(data, schema, rescues=True, key_limits=FEW_AND_SHORT, block_bytes=block_bytes)
    assert (rescued.keys, rescued.has_further, rescued.rejects) == (few.keys, few.has_further, expected.rejects)
    assert rescued.rows == expected.rows
    check_sums(data, schema)


@given(SOUP, st.integers(1, 60))
def test_any_bytes_are_taken_as_inspection_takes_them(data, block_bytes):
    """Rows, rejects, line numbers, offsets, reasons and the order of keys are the same for any bytes."""
    check(data, block_bytes=block_bytes)


@given(st.lists(mutated(), min_size=1, max_size=8).map(b"\n".join))
def test_lines_that_are_nearly_records_are_taken_as_inspection_takes_them(data):
    """A byte more, less or other: both see the same."""
    check(data)


def test_torture_lines_are_taken_as_inspection_takes_them():
    """All at once, so that each is read with the expectations that the others left; and each alone."""
    lines = [*GOOD_LINES, *(line for line, _ in BAD_LINES), *DEEP_LINES, *LONG_KEY_LINES, *GOOD_LINES]
    check(b"\n".join(lines))
    for line in lines:
        check(line)


@pytest.mark.large
def test_a_hundred_thousand_lines_are_taken_as_inspection_takes_them():
    """Torture, soups and mutations without end, in files of a thousand lines."""
    from hypothesis import HealthCheck, Phase, settings  # noqa: PLC0415

    seen = 0

    @settings(
        max_examples=600, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )
    @given(st.lists(st.one_of(SOUP, mutated(), mutated()), min_size=150, max_size=250).map(b"\n".join))
    def run(data):
        nonlocal seen
        seen += data.count(b"\n") + 1
        check(data)

    run()
    assert seen >= 100_000


def test_of_a_key_that_comes_twice_the_last_value_counts():
    """Whether it is a text, null, a value of the type, or none of it; also written with escapes."""
    lines = [
        b'{"s":1,"s":"2","n":1,"n":2}',
        b'{"s":"x","s":null,"n":"x","n":null}',
        b'{"s":null,"\\u0073":"y","n":"x","n":7}',
        b'{"n":7,"n":"x","n":"y","o":1,"o":2}',
        b'{"n":7,"n":"x","n":8,"o":1,"o":null}',
    ]
    taken = by_kernel(b"\n".join(lines), schema_of({"s": "string", "n": "long"}), rescues=True)
    assert taken.rows == [{"s": "2", "n": 2}, {}, {"s": "y", "n": 7}, {"n": "y", "o": "2"}, {"n": 8}]


def test_keys_without_a_column_are_rescued_or_end_the_rows():
    """With a place for them they are rows' rescued data; without, they are named and nothing is written."""
    data = b'{"a":1}\n{"a":2,"late":[1, 2],"later":null}\n{"a":3}'
    rescued = by_kernel(data, schema_of({"a": "string"}, rescued=True), rescues=True)
    assert rescued.rows == [{"a": "1"}, {"a": "2", "late": "[1, 2]"}, {"a": "3"}]
    assert rescued.keys == ["late", "later"]
    lacking = by_kernel(data, schema_of({"a": "string"}))
    assert (lacking.rows, lacking.keys) == ([], ["late", "later"])


def test_values_that_do_not_fit_are_rescued_and_counted():
    """The column is null then, and the text is kept; so is the text of a number in a text."""
    schema = schema_of({"n": "long", "d": "decimal(4,2)", "t": "timestamp", "b": "boolean", "f": "double", "y": "date"})
    kernel = NativeKernel(plan_of(schema))
    kernel.begin_file("a")
    feed(kernel, b'{"n":"5","d":1.50,"t":"2026-01-02T03:04:05Z","b":true,"f":-0.0,"y":"2026-01-02"}\n')
    feed(kernel, b'{"n":1.5,"d":123,"t":"soon","b":"TRUE","f":1e999,"y":"2026-02-30"}\n{}')
    kernel.end_file()
    good, bad, empty = parquet_rows(ended(kernel), schema)
    assert good["n"] == 5
    assert str(good["d"]) == "1.50"
    assert good["t"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (good["b"], str(good["f"]), str(good["y"])) == (True, "-0.0", "2026-01-02")
    assert bad == {"n": "1.5", "d": "123", "t": "soon", "b": "TRUE", "f": "1e999", "y": "2026-02-30"}
    assert empty == {}
    assert kernel.rescued_values == 6


def test_a_withdrawn_file_leaves_nothing_behind():
    """Neither rows nor keys nor counts, wherever it stands among others."""
    schema = schema_of({"a": "long", "b": "string"})
    kernel = NativeKernel(plan_of(schema, rescues=True))
    for source, data, is_good in (
        ("bad first", b'{"a":"no number","x":1,"b":1}\n', False),
        ("good", b'{"a":1}\n{"a":"none"}\n', True),
        ("bad", b'{"b":"lost","a":2}\n{"y":1}\n', False),
        ("good too", b'{"y":2}\n{"a":3}\n', True),
        ("bad last", b'{"a":4}\n', False),
    ):
        kernel.begin_file(source)
        feed(kernel, data)
        if is_good:
            assert kernel.end_file() == (["y"] if source == "good too" else [], False)
        else:
            assert kernel.withdraw_file()
    assert parquet_rows(ended(kernel), schema) == [
        {"a": 1},
        {"a": "none"},
        {"y": "2"},
        {"a": 3},
    ]
    assert kernel.rescued_values == 1


def test_a_file_that_was_handed_on_cannot_be_withdrawn():
    """A long file is written while it is read, so that memory stays bounded; then there is no way back."""
    kernel = NativeKernel(plan_of(schema_of({"a": "string"})))
    kernel.begin_file("long")
    feed(kernel, b'{"a":"%s"}\n' % (b"x" * 1_000_000) * 20)
    assert not kernel.withdraw_file()
    kernel.end_file()
    assert len(pq.read_table(io.BytesIO(ended(kernel)))) == 20


def test_a_large_file_has_several_row_groups_of_a_bounded_size():
    """So that it can be read side by side, and so that what is held in memory has an end."""
    schema = schema_of({"v": "string"})
    kernel = NativeKernel(plan_of(schema))
    kernel.begin_file("large")
    chance = random.Random(1)
    written = bytearray()
    for _ in range(64):
        feed(kernel, b"".join(b'{"v":"%s"}\n' % chance.randbytes(500).hex().encode() for _ in range(1024)))
        written += kernel.take()
    kernel.end_file()
    metadata = pq.ParquetFile(io.BytesIO(bytes(written) + ended(kernel))).metadata
    sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
    assert len(sizes) == 2
    assert max(sizes) < 48 << 20


def test_what_is_written_does_not_depend_on_who_encodes_it():
    """The same bytes at each step, whether a further thread encodes the rows or the one of the caller."""
    chance = random.Random(2)
    blocks = [
        b"".join(b'{"v":"%s"}\n' % chance.randbytes(100).hex().encode() for _ in range(chance.randrange(900)))
        for _ in range(60)
    ]
    steps = []
    for threads in (1, 1_000):  # other kernels of the process may not be gone yet
        kernel = NativeKernel(plan_of(schema_of({"v": "string"}), held_bytes=300_000), threads=threads)
        taken = []
        for number, block in enumerate(blocks):
            kernel.begin_file(f"file {number}")
            feed(kernel, block)
            kernel.end_file()
            taken.append((kernel.take(), kernel.output_bytes))
            if number % 25 == 24:
                taken.append((ended(kernel), kernel.output_bytes))
        steps.append([*taken, (ended(kernel), 0)])
    assert steps[0] == steps[1]
    assert sum(len(data) for data, _ in steps[0]) > 3_000_000


@pytest.mark.parametrize(("columns", "pages_bytes"), [(5, 1 << 18), (5, 1 << 20), (200, 1 << 20)])
def test_the_length_of_a_file_in_the_making_is_close_to_that_at_its_end(columns, pages_bytes):
    """However much of it is in pages that are not compressed yet: by that length the engine ends files."""
    chance = random.Random(3)
    kernel = NativeKernel(
        plan_of(schema_of({f"k{at}": "string" for at in range(columns)}), held_bytes=1 << 16, pages_bytes=pages_bytes)
    )
    kernel.begin_file("file")
    for _ in range(8):
        rows = 40_000 // columns
        lines = [{f"k{at}": f"value {chance.randrange(10**6)} of {at}" for at in range(columns)} for _ in range(rows)]
        feed(kernel, b"".join(orjson.dumps(line) + b"\n" for line in lines))
    kernel.end_file()
    length, taken = kernel.output_bytes, 0
    while data := kernel.take():
        taken += len(data)
    at_end = taken + len(ended(kernel))
    assert 0.85 < length / at_end < 1.15


def test_completed_bytes_are_taken_in_parts():
    """No part is long, and what was not taken is still there when the file has ended."""
    chance = random.Random(2)
    kernel = NativeKernel(plan_of(schema_of({"v": "string"}), held_bytes=1_000_000))
    kernel.begin_file("file")
    values = [chance.randbytes(20_000).hex() for _ in range(2_500)]
    parts: list[bytes] = []
    for at in range(0, len(values), 25):
        feed(kernel, b"".join(b'{"v":"%s"}\n' % value.encode() for value in values[at : at + 25]))
        if at % 250 == 0:
            parts.append(kernel.take())
    kernel.end_file()
    kernel.finish_output()
    parts += iter(kernel.take, b"")
    assert max(len(part) for part in parts) == 1024 * 1024
    assert pq.read_table(io.BytesIO(b"".join(parts))).column("c0").to_pylist() == values
    assert ended(kernel) == b""


def test_a_file_is_taken_to_its_end_before_the_next_one_begins():
    """Else the bytes of two files would come one behind the other, with no border between them."""
    kernel = NativeKernel(plan_of(schema_of({"v": "string"})))
    kernel.begin_file("one")
    feed(kernel, b'{"v":"1"}\n')
    kernel.end_file()
    kernel.finish_output()
    feed(kernel, b'{"v":"2"}\n')
    with pytest.raises(StagingError, match="expected the bytes of the one that has ended to be taken before"):
        kernel.finish_output()


def test_a_long_footer_is_taken_in_parts():
    """Files of very many columns have one."""
    schema = schema_of({f"k{at}": "string" for at in range(9_000)})
    kernel = NativeKernel(plan_of(schema))
    kernel.begin_file("file")
    feed(kernel, orjson.dumps({f"k{at}": str(at) for at in range(9_000)}) + b"\n")
    kernel.end_file()
    kernel.finish_output()
    parts = list(iter(kernel.take, b""))
    assert len(parts) > 1
    assert max(map(len, parts)) <= 1024 * 1024
    assert pq.read_metadata(io.BytesIO(b"".join(parts))).num_columns == 9_000


def test_a_kernel_that_is_dropped_ends_with_its_thread():
    """A batch is under way when the kernel is dropped; its thread has ended then, and others may have theirs."""
    for _ in range(20):
        kernel = NativeKernel(plan_of(schema_of({"v": "string"}), held_bytes=1), threads=1_000)
        kernel.begin_file("dropped")
        feed(kernel, b'{"v":"%s"}\n' % (b"x" * 1_000_000))
        del kernel
        assert "encode" not in {thread.read_text().strip() for thread in Path("/proc/self/task").glob("*/comm")}


def test_a_column_of_thousands_of_values_has_a_dictionary():
    """Such as the ids of users: nine thousand values, each of them several times."""
    kernel = NativeKernel(plan_of(schema_of({"user_id": "string"})))
    kernel.begin_file("events")
    chance = random.Random(1)
    feed(kernel, b"".join(b'{"user_id":"u-%07d"}\n' % chance.randrange(9_000) for _ in range(40_000)))
    kernel.end_file()
    metadata = pq.read_metadata(io.BytesIO(ended(kernel)))
    assert metadata.row_group(0).column(0).total_uncompressed_size < 9_000 * 13 + 40_000 * 2


def test_texts_that_seldom_repeat_have_no_dictionary_from_the_second_row_group_on():
    """Those that do repeat have one in each row group, and so have all in the first one of the next file."""
    kernel = NativeKernel(plan_of(schema_of({"id": "string", "kind": "string"})))
    chance = random.Random(2)
    for _ in range(2):
        kernel.begin_file("events")
        for _ in range(25):
            ids = (chance.randbytes(200).hex().encode() for _ in range(5_000))
            feed(kernel, b"".join(b'{"kind":"k-%d","id":"%s"}\n' % (chance.randrange(9), each) for each in ids))
        kernel.end_file()
        file = io.BytesIO(ended(kernel))
        metadata = pq.read_metadata(file)
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        assert [[group.column(place).has_dictionary_page for group in groups] for place in (0, 1)] == [
            [True, False],
            [True, True],
        ]
        assert metadata.num_rows == len(set(pq.read_table(file).column(0).to_pylist())) == 125_000


def test_metadata_columns_say_where_rows_are_from():
    """Each row has its own file, also where files were withdrawn and where output files end in between."""
    metadata = ("_source_file", "_processed_at", "_manifest_id", "file_date")
    kernel = NativeKernel(plan_of(schema_of({"a": "string"}), metadata=metadata))
    outputs = []
    for source, rows, is_good in (("s3://b/é 1", 2, True), ("withdrawn", 3, False), ("empty", 0, True), ("2", 1, True)):
        kernel.begin_file(source)
        feed(kernel, b'{"a":1}\n' * rows)
        if is_good:
            kernel.end_file()
        else:
            kernel.withdraw_file()
        if source == "empty":
            outputs.append(ended(kernel))
    outputs.append(ended(kernel))
    first, second = (pq.read_table(io.BytesIO(data)).to_pylist() for data in outputs)
    row = {"_processed_at": NOW, "_manifest_id": "m-1", "file_date": NOW.date(), "c0": "1"}
    assert first == [{"_source_file": "s3://b/é 1", **row}] * 2
    assert second == [{"_source_file": "2", **row}]


@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_each_column_has_the_field_id_of_the_registry(compression):
    """Also metadata columns, and the keys and values of the rescued data; readers see them in Parquet's own schema."""
    schema = schema_of({"n": "long", "d": "decimal(4,2)", "s": "string", "t": "timestamp"})
    kernel = NativeKernel(replace(plan_of(schema, metadata=METADATA_COLUMNS), compression=compression))
    kernel.begin_file("a")
    feed(kernel, b'{"n":1,"d":"none"}\n')
    kernel.end_file()
    found = field_ids(io.BytesIO(ended(kernel)))
    assert found == {
        "_source_file": 10_000_001,
        "_processed_at": 10_000_002,
        "_manifest_id": 10_000_003,
        "file_date": 10_000_004,
        "c0": 1,
        "c1": 2,
        "c2": 3,
        "c3": 4,
        "_rescued_data": 5,
        "_rescued_data.key": 10_000_101,
        "_rescued_data.value": 10_000_102,
    }


def test_keys_that_are_not_collected_are_rescued_at_once():
    """A long key makes no row wait for a column, and no file is refused for its keys."""
    limits = KeyLimits(max_new_columns=1 - COUNTED_KEYS, max_key_characters=9)
    schema = schema_of({"a": "string"}, rescued=True)
    data = b'{"a":1,"%s":2,"%s":null}\n{"%s":"\\n"}\n' % (b"l" * 10, b"m" * 10, b"l" * 10)
    taken = by_kernel(data, schema, key_limits=limits)
    assert taken.rows == [{"a": "1", "l" * 10: "2"}, {"l" * 10: "\n"}]
    assert (taken.keys, taken.has_further) == ([], True)
    lacking = by_kernel(data + b'{"new":1}\n{"newer":1}', schema, key_limits=limits)
    assert (lacking.rows, lacking.keys, lacking.has_further) == ([], ["new"], True)
    without_place = by_kernel(data, schema_of({"a": "string"}), key_limits=limits)
    assert (without_place.rows, without_place.keys, without_place.has_further) == ([], [], True)


def test_of_a_key_that_is_not_collected_the_last_value_counts():
    """Also written with escapes, also where the last value is null, and in a record with thousands of them."""
    lines = [b'{"kk":1,"k\\u006b":"2"}', b'{"kk":1,"kk":null}', b'{"kk":null,"kk":3}']
    wide = b",".join(b'"k%d":%d' % (number % 5_000, number) for number in range(7_000))
    limits = KeyLimits(max_new_columns=-COUNTED_KEYS)
    taken = by_kernel(
        b"\n".join([*lines, b"{%s}" % wide]), schema_of({}, rescued=True), rescues=True, key_limits=limits
    )
    assert taken.rows[:3] == [{"kk": "2"}, {}, {"kk": "3"}]
    assert taken.rows[3] == {f"k{number % 5_000}": str(number) for number in range(7_000)}


def test_a_withdrawn_file_makes_room_for_the_keys_of_the_next():
    """And the keys that it had too many are nothing to rescue."""
    schema = schema_of({"a": "string"})
    kernel = NativeKernel(plan_of(schema, key_limits=FEW_AND_SHORT))
    kernel.begin_file("withdrawn")
    feed(kernel, b'{"x":1,"y":1,"long":1}\n')
    assert kernel.lacks_columns
    assert kernel.withdraw_file()
    kernel.begin_file("good")
    feed(kernel, b'{"a":1}\n')
    assert kernel.end_file() == ([], False)
    assert not kernel.lacks_columns
    kernel.begin_file("more")
    feed(kernel, b'{"y":1}\n')
    assert kernel.end_file() == (["y"], False)


def test_a_wheel_of_another_release_is_refused(monkeypatch):
    """With the reason, and before any line is read."""
    monkeypatch.delattr("compactor_native.INTERFACE")
    assert not is_installed()
    with pytest.raises(StagingError, match=f"interface 1, expected {INTERFACE}: it is from a different release"):
        NativeKernel(plan_of(schema_of({"a": "string"})))


def test_a_fault_of_the_module_is_an_error_and_not_the_end_of_the_process():
    """An error or a panic of the kernel becomes a `StagingError`."""
    with pytest.raises(StagingError, match="compression"):
        NativeKernel(replace(plan_of(schema_of({"a": "string"})), compression="lzo"))
