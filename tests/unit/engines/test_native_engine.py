"""The native engine round by round: what is written once, what is written again, and that it all comes to the same."""

import random
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.documents.changes import Commit
from compactor.core.errors import SettingsError
from compactor.engines.native import engine as native_engine
from compactor.engines.native.bin_task import BinResult, BinTask
from compactor.engines.native.engine import LEEWAY, bins_of
from compactor.ledger.sizing import leeway, planned_files
from compactor.schema import schema_of_settings
from compactor.wiring import engines, operating, streaming
from tests.support import extras
from tests.support.harness import Harness, commit_of_ratio
from tests.support.sampling import few

TARGET = 1000
FILES = st.lists(st.integers(0, 3 * TARGET), min_size=1, max_size=40)


def loads(files: list[int], ratio: float = 1.0) -> list[int]:
    return [sum(each) for each in bins_of(files, lambda size: size, ratio=ratio, target_file_bytes=TARGET)]


@given(files=FILES, ratio=st.sampled_from([0.0, 0.1, 1.0, 3.0]))
def test_every_file_is_in_one_bin(files: list[int], ratio: float) -> None:
    """Bins keep the order of the manifest, and none is empty; there are never more of them than output files."""
    numbered = list(enumerate(files))
    bins = bins_of(numbered, lambda file: file[1], ratio=ratio, target_file_bytes=TARGET)
    assert sorted(file for each in bins for file in each) == numbered
    assert all(each == sorted(each) and each for each in bins)
    assert len(bins) <= planned_files(sum(files), ratio, TARGET)


@given(files=FILES)
def test_bins_are_right_where_the_whole_could_be(files: list[int]) -> None:
    """Files of any size: if the whole output can be in files of the right size, that of each bin can."""
    if leeway(sum(files), TARGET) >= LEEWAY:
        assert all(leeway(load, TARGET) >= LEEWAY for load in loads(files) if load)


@given(files=st.lists(st.integers(1, TARGET // 20), min_size=40, max_size=120))
def test_small_files_make_one_bin_for_each_output_file(files: list[int]) -> None:
    """All cores have work: bins are only joined where large files leave no other way."""
    if leeway(sum(files), TARGET) >= 1.06:
        assert len(loads(files)) == planned_files(sum(files), 1.0, TARGET)


@pytest.mark.parametrize(
    ("files", "bins"),
    [
        ([500] * 5, [2500]),  # bins of 1000, 1000 and 500 would leave a file of half a target
        ([1400, 900, 900], [900, 2300]),  # 1400 alone is one file too large, or two too small
        ([700, 700], [700, 700]),  # not to be fixed: 1400 is no better, and two tasks are faster
        ([5000], [5000]),
        ([330] * 9, [990, 990, 990]),
        ([0, 0], [0]),
    ],
)
def test_bins_by_example(files: list[int], bins: list[int]) -> None:
    """A bin whose file would be too small or too large is joined with another one."""
    assert sorted(loads(files)) == bins


extras.NATIVE.need()

MIB = 1024 * 1024


class Watched(ThreadBinWorkers):
    """Workers that remember what they were asked to do: how many files each task of each round had."""

    def __init__(self, store) -> None:
        super().__init__(store)
        self.rounds: list[list[int]] = []

    def write_bins(self, manifest_id: str, tasks: Sequence[BinTask]) -> list[BinResult]:
        self.rounds.append([len(task.files) for task in tasks])
        return super().write_bins(manifest_id, tasks)


def compact(harness: Harness, manifest_id: str, *contents: bytes) -> tuple[Commit, list[list[int]]]:
    """Compact files by the native engine. Returns the commit, and the rounds that it took."""
    uri = harness.deliver(manifest_id, *contents)
    app = harness.app()
    workers = Watched(app.store)
    batch = streaming.scheduler(app, engines.native_engine(app, workers)).run([uri])
    assert batch.failures == {}
    report = operating.verifier(app, deep=True).verify_all()
    assert report.discrepancies == []
    return harness.commit(manifest_id), workers.rounds


def rows(harness: Harness, commit: Commit) -> list[dict[str, Any]]:
    """The rows by key, in any order, without nulls."""
    columns = harness.app().registry.version(commit.schema_version).columns
    found = []
    for file in commit.outputs:
        for row in harness.table(file.final):
            of_row = {column.key: row.get(column.name) for column in columns if column.key is not None}
            of_row |= {
                key: value for column in columns if column.key is None for key, value in row.get(column.name) or ()
            }
            found.append({key: value for key, value in of_row.items() if value is not None})
    return sorted(found, key=repr)


def test_a_manifest_whose_keys_are_known_takes_one_round():
    """The first one learns them; from then on every byte is read once."""
    harness = Harness()
    _, first = compact(harness, "a", b'{"a":1,"b":2}\n', b'{"b":1,"c":2}\n')
    assert first == [[2], [2]]
    commit, steady = compact(harness, "b", b'{"c":1}\nbad\n', b'{"a":3}\n', b"{}\n")
    assert steady == [[3]]
    assert (commit.redone_bins, commit.schema_version, len(commit.rejects)) == (0, 1, 1)
    assert rows(harness, commit) == [{"a": "3"}, {"c": "1"}, {}]


def test_a_late_key_has_its_bin_alone_written_again(monkeypatch):
    """The others keep an older schema version, and are verified as such."""
    harness = Harness(output={"target_file_bytes": MIB})
    monkeypatch.setattr(native_engine, "SAMPLE_BYTES", MIB)
    filler = b'{"a":"%s"}\n' % (b"x" * 1000) * 300
    compact(harness, "a", filler)
    big = [b"".join(b'{"a":"%0800x"}\n' % random.Random(at).getrandbits(3200) for at in range(1000)) for _ in range(4)]
    big[2] += b'{"a":1,"late":2}\n'
    harness.app().ledger.remember(commit_of_ratio(1.0))
    commit, rounds = compact(harness, "b", *big)
    assert rounds == [[1, 2, 1], [1]]
    assert commit.redone_bins == 1
    assert [file.schema_version for file in commit.outputs].count(1) == len(commit.outputs) - 1
    assert commit.schema_version == 2
    assert {"a": "1", "late": "2"} in rows(harness, commit)


def test_declared_columns_and_first_keys_come_in_one_version():
    """As with any engine: the columns of the schema file first, then the keys; also where no line is a record."""
    harness = Harness(schema={"file": "/w/columns.toml"})
    harness.store.put("/w/columns.toml", b'[[columns]]\nname = "n"\ntype = "long"\n')
    compact(harness, "a", b"no json\n")
    assert [column.name for column in harness.app().registry.latest().columns] == ["n", "_rescued_data"]
    other = Harness(schema={"file": "/w/columns.toml"})
    other.store.put("/w/columns.toml", b'[[columns]]\nname = "n"\ntype = "long"\n')
    commit, _ = compact(other, "a", b'{"a":1,"n":2}\n{"n":"x"}\n')
    latest = other.app().registry.latest()
    assert (latest.version, [column.name for column in latest.columns]) == (1, ["n", "a", "_rescued_data"])
    assert rows(other, commit) == sorted([{"n": 2, "a": "1"}, {"n": "x"}], key=repr)


def test_a_schema_file_that_contradicts_the_record_is_told_without_new_keys():
    """The recorded version holds: a person has to correct the schema file, even if every key has a column."""
    harness = Harness(schema={"file": "/w/columns.toml"})
    harness.store.put("/w/columns.toml", b'[[columns]]\nname = "n"\ntype = "long"\n')
    compact(harness, "a", b'{"n":1}\n')
    harness.store.put("/w/columns.toml", b'[[columns]]\nname = "n"\ntype = "double"\n')
    app = harness.app()
    with pytest.raises(SettingsError, match="as it has been"):
        streaming.scheduler(app, engines.native_engine(app, ThreadBinWorkers(app.store))).run(
            [harness.deliver("b", b'{"n":2}\n')]
        )


def test_a_declared_key_is_never_rescued_for_want_of_its_column():
    """A full schema, and then a schema file that declares one key more: the key gets its column."""
    harness = Harness(schema={"max_columns": 1})
    compact(harness, "a", b'{"a":1,"b":1}\n')
    later = Harness(schema={"max_columns": 1, "file": "/w/columns.toml"}, store=harness.store)
    later.store.put("/w/columns.toml", b'[[columns]]\nname = "n"\ntype = "long"\n')
    commit, _ = compact(later, "b", b'{"n":2,"b":3}\n')
    assert "n" in later.app().registry.latest().keys
    assert rows(later, commit) == [{"b": "3", "n": 2}]


def test_a_sample_without_keys_adds_no_column(monkeypatch):
    """The rest of the manifest has some."""
    monkeypatch.setattr(native_engine, "SAMPLE_BYTES", 1_000)
    harness = Harness(output={"target_file_bytes": MIB})
    compact(harness, "a", b"{}\n" * 400, b'{"a":"%s"}\n' % (b"x" * 1000) * 1_200)
    assert [column.key for column in harness.app().registry.latest().columns] == ["a"]


def test_a_single_file_is_not_sampled(monkeypatch):
    """It is written once to find its keys, and once with their columns; of two files, one is sampled before."""
    monkeypatch.setattr(native_engine, "SAMPLE_BYTES", 1_000)
    line = b'{"a":"%s"}\n' % (b"x" * 1000)
    assert compact(Harness(), "a", line * 3)[1] == [[1], [1]]
    assert compact(Harness(), "a", line, line * 3)[1] == [[1], [1], [2]]


def test_records_without_keys_get_the_column_of_the_empty_key():
    """Parquet has no rows without columns."""
    harness = Harness()
    commit, rounds = compact(harness, "a", b"{}\n{}\n", b"no json\n")
    assert rounds == [[2], [2]]
    assert [len(harness.table(file.final)) for file in commit.outputs] == [2]
    assert [column.key for column in harness.app().registry.latest().columns] == [""]


def test_keys_beyond_the_limit_are_rescued_without_a_second_round():
    """Once the schema is full, a key more makes nothing be written again."""
    harness = Harness(schema={"max_columns": 2})
    first, rounds = compact(harness, "a", b'{"a":1,"b":2}\n{"c":3,"d":null}\n')
    assert len(rounds) == 2
    assert rows(harness, first) == [{"a": "1", "b": "2"}, {"c": "3"}]
    second, rounds = compact(harness, "b", b'{"a":1,"e":[1]}\n', b'{"f":"x","c":1,"c":2}\n')
    assert (len(rounds), second.redone_bins, second.schema_version) == (1, 0, first.schema_version)
    assert rows(harness, second) == [{"a": "1", "e": "[1]"}, {"c": "2", "f": "x"}]


def test_a_full_schema_without_rescued_data_gets_it():
    """The first key beyond the limit adds the column that it goes to."""
    harness = Harness(schema={"max_columns": 1})
    compact(harness, "a", b'{"a":1}\n')
    commit, rounds = compact(harness, "b", b'{"a":2,"b":3}\n')
    assert (len(rounds), commit.schema_version) == (2, 2)
    assert rows(harness, commit) == [{"a": "2", "b": "3"}]


@pytest.mark.parametrize("max_columns", [3, pytest.param(2000, marks=pytest.mark.full)])
def test_a_flood_of_keys_takes_no_neighbour_along(max_columns, monkeypatch):
    """Two files with 11,000 keys each beside a good one: all lines are rows, and no value is lost."""
    monkeypatch.setattr(schema_of_settings, "MAX_NEW_COLUMNS_PER_DAY", 2000)
    harness = Harness(schema={"max_columns": max_columns})
    floods = [{f"{letter}{at}": str(at) for at in range(11_000)} for letter in "xy"]
    commit, _ = compact(harness, "m", *map(orjson.dumps, floods), b'{"id":1}\n')
    assert rows(harness, commit) == sorted([*floods, {"id": "1"}], key=repr)
    columns = columns_of(harness)
    assert [column.key for column in columns[:3]] == ["x0", "x1", "x2"]
    assert len(columns) == max_columns + 1
    again, rounds = compact(harness, "n", orjson.dumps(floods[1]))
    assert (len(rounds), rows(harness, again)) == (1, [floods[1]])


def test_a_new_key_a_line_behind_all_columns_leaves_whole_rows():
    """The keys become too many while rows of the file are written; the next file has no record, the last is good."""
    harness = Harness(schema={"max_columns": 8}, output={"target_file_bytes": 1024 * 1024})
    full = {f"c{at}": str(at) for at in range(8)}
    late = [{"id": str(at), f"late{at}": "x" * 300} for at in range(11_000)]
    files = (orjson.dumps(full), b"\n".join(map(orjson.dumps, late)), b"\n", b'{"id":"good"}\n')
    commit, _ = compact(harness, "m", *files)
    assert rows(harness, commit) == sorted([full, *late, {"id": "good"}], key=repr)


def test_a_long_key_is_rescued_and_its_line_is_a_row():
    """It makes no column; the first one brings the column of rescued data."""
    harness = Harness()
    commit, _ = compact(harness, "a", b'{"%s":1}\n' % (b"k" * 257), b'{"a":1}\n')
    assert rows(harness, commit) == [{"a": "1"}, {"k" * 257: "1"}]
    assert [column.key for column in columns_of(harness)] == ["a", None]
    commit, rounds = compact(harness, "b", b'{"%s":"x","a":2}\n' % (b"l" * 60_000))
    assert (len(rounds), commit.redone_bins) == (1, 0)
    assert rows(harness, commit) == [{"a": "2", "l" * 60_000: "x"}]
    only = Harness()
    commit, _ = compact(only, "a", b'{"%s":1}\n{}\n' % (b"k" * 257))
    assert [column.key for column in columns_of(only)] == [None]
    assert rows(only, commit) == [{"k" * 257: "1"}, {}]


@pytest.mark.parametrize("seed", few(range(12), 4))
def test_it_comes_to_the_same_as_a_plain_engine(seed, monkeypatch):
    """Columns with their names and order, rows, rejects, reports and rescued values, manifest by manifest."""
    monkeypatch.setattr(native_engine, "SAMPLE_BYTES", 2_000)
    chance = random.Random(seed)
    manifests = [[lines(chance) for _ in range(chance.randint(1, 8))] for _ in range(3)]
    schema = {"max_columns": chance.choice([4, 2000]), "metadata_columns": ["_source_file"]}
    worlds = [Harness(schema=schema, output={"target_file_bytes": MIB}) for _ in range(2)]
    for number, contents in enumerate(manifests):
        native, _ = compact(worlds[0], f"m{number}", *contents)
        plain_uri = worlds[1].deliver(f"m{number}", *contents)
        assert worlds[1].runner().run([plain_uri]).failures == {}
        plain = worlds[1].commit(f"m{number}")
        assert [(c.key, c.name) for c in columns_of(worlds[0])] == [(c.key, c.name) for c in columns_of(worlds[1])]
        assert rows(worlds[0], native) == rows(worlds[1], plain)
        assert [report.model_dump(exclude={"etag"}) for report in native.files] == [
            report.model_dump(exclude={"etag"}) for report in plain.files
        ]
        rejects = [
            [row for file in commit.rejects for row in harness.table(file.final)]
            for harness, commit in zip(worlds, (native, plain), strict=True)
        ]
        assert sorted(rejects[0], key=repr) == sorted(rejects[1], key=repr)


def columns_of(harness: Harness):
    return harness.app().registry.latest().columns


def lines(chance: random.Random) -> bytes:
    """A file of records, rejects and blanks, with keys that differ in case, come late, or are seldom."""
    made = []
    for _ in range(chance.randint(0, 30)):
        kind = chance.random()
        if kind < 0.1:
            made.append(chance.choice([b"", b" ", b"no json", b"[1]", b'{"a":1}x', b"\xff"]))
        else:
            keys = chance.sample(
                ["id", "ID", "user.name", "user-name", "é", "n", f"k{chance.randint(0, 9)}"], chance.randint(0, 4)
            )
            made.append(b"{%s}" % b",".join(b'"%s":%d' % (key.encode(), chance.randint(0, 9)) for key in keys))
    return b"\n".join(made)
