"""Input that only the records lead to: of expired rows, of dead letters, and with a value in the name of a folder."""

import pytest

from compactor.core.documents import manifest_parsing
from compactor.ops.erase.inputs import HeldInput
from compactor.upkeep.cleaner import Kind
from compactor.wiring import operating
from tests.support.erasing import ALICE, OTHERS, PLAIN, check_tidy, erase, holding
from tests.support.expiring import NEXT_DAY, expire, wait_and_close
from tests.support.harness import DAY, Harness
from tests.support.memory_store import MemoryStore
from tests.support.redriving import exhaust, new_harness


def shown(inputs: list[HeldInput]) -> list[tuple[str, bool]]:
    return [(each.uri.rpartition("/")[2], each.deleted) for each in inputs]


def test_input_of_an_expired_date() -> None:
    """Its rows are gone under a rule, and its input is not."""
    harness = Harness()
    harness.deliver("m1", PLAIN, OTHERS)
    harness.run_once()
    wait_and_close(harness)
    assert expire(harness, NEXT_DAY).expired
    report = erase(harness)
    assert (report.erased, shown(report.inputs), report.left) == ((), [("m1-0.ndjson", True)], 0)
    assert holding(harness) == []


def test_input_of_a_dead_letter() -> None:
    """Its lines are in no output: it is named."""
    harness = new_harness()
    harness.deliver("m1", PLAIN)
    exhaust(harness)
    assert shown(erase(harness).inputs) == [("m1-0.ndjson", False)]


def test_a_value_in_the_name_of_a_folder() -> None:
    """The rows and the file go; the records keep the name, and each call says so."""
    harness = Harness(reading={"hive_keys": True})
    named = harness.file(f"user_id={ALICE}/a.ndjson", b'{"n": 1}\n{"n": 2}\n')
    other = harness.file("user_id=bob/b.ndjson", b'{"n": 3}\n')
    files = [
        file.model_copy(update={"path_columns": {"user_id": name}}) for file, name in ((named, ALICE), (other, "bob"))
    ]
    harness.put_manifest("m1.json", harness.manifest("m1", files).to_json())
    harness.run_once()
    assert len(harness.output_rows()) == 3
    report = erase(harness)
    assert [(each.rows, each.date) for each in report.erased] == [(2, DAY)]
    assert shown(report.inputs) == [("a.ndjson", True)]
    assert ["in their names" in each.why for each in report.refused] == [True]
    assert len(harness.output_rows()) == 1
    check_tidy(harness)
    assert erase(harness).left == 1


def test_rows_whose_rejects_expired() -> None:
    """They go, and with them the file that alone has the bytes of the rejects is named; all adds up."""
    harness = Harness()
    harness.deliver("m1", PLAIN, OTHERS)
    harness.run_once()
    harness.clock.advance(32 * 24 * 3600.0)
    assert operating.cleaner(harness.app()).clean(archive_days=30, rejects_days=31).removed[Kind.REJECTS] == 1
    report = erase(harness)
    assert [(each.rows, each.rejected_lines) for each in report.erased] == [(1, 0)]
    assert (report.failed, report.refused, report.discrepancies) == ((), (), ())
    found = harness.verification()
    assert (found.discrepancies, found.rows, found.erased_lines) == ([], 2, 1)


def test_a_file_that_is_replaced_before_it_goes_stays() -> None:
    """No one has compacted what is there then."""
    harness = Harness()
    harness.deliver("m1", PLAIN)
    harness.run_once()
    [uri] = [info.uri for info in harness.store.list(f"{harness.root}/") if info.uri.endswith("m1-0.ndjson")]
    report = erase(harness, store=Replacing(harness.store, uri))
    assert [(each.deleted, "replaced" in each.why) for each in report.inputs] == [(False, True)]
    assert harness.store.read(uri) == OTHERS


class Replacing(MemoryStore):
    """A producer writes a file anew after it was searched, and before it is described again."""

    def __init__(self, store: MemoryStore, uri: str) -> None:
        self.__dict__ = store.__dict__
        self._replaced = uri

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        data = super().read_range(uri, start, length, etag=etag)
        if uri == self._replaced:
            self.put(uri, OTHERS)
        return data


@pytest.mark.parametrize("name", [f"{ALICE}/a.ndjson", f"of-{ALICE}.ndjson", f"a={ALICE.replace('-', '%2D')}.ndjson"])
def test_a_value_in_any_part_of_a_name(name: str) -> None:
    """The records keep it, even if its rows are gone, so each call says so."""
    harness = Harness()
    files = [harness.file(name, PLAIN), harness.file(f"{ALICE}s.ndjson", OTHERS)]
    harness.put_manifest("m1.json", harness.manifest("m1", files).to_json())
    harness.put_manifest("m2.json", harness.manifest(f"m-{ALICE}", [harness.file("b.ndjson", OTHERS)]).to_json())
    harness.run_once()
    for _ in range(2):
        report = erase(harness)
        assert {(each.manifest_id, each.why[:2]) for each in report.refused} == {("m1", "1 "), (f"m-{ALICE}", "1 ")}
    exhausted = new_harness()
    exhausted.put_manifest("m1.json", exhausted.manifest("m1", [exhausted.file(name, OTHERS)]).to_json())
    exhaust(exhausted)
    assert [each.manifest_id for each in erase(exhausted).refused] == ["m1"]


def test_a_refused_dead_letter() -> None:
    """Its message, its original and the input that it names are searched; those outside the prefixes are not read."""
    harness = Harness()
    named, plain = harness.file(f"x-{ALICE}.ndjson", PLAIN), harness.file("a.ndjson", PLAIN)
    harness.put_manifest("m1.json", harness.manifest("m1", [named, named]).to_json())
    harness.put_manifest("m2.json", refused([f"/elsewhere/{ALICE.replace('-', '%2D')}.ndjson"]))
    harness.put_manifest("m3.json", refused(["/elsewhere/\\u0061lice-7f3a.ndjson"]))
    harness.put_manifest("m4.json", refused([plain.uri, plain.uri, "/elsewhere/b.ndjson", "/w/raw/\\u0000"]))
    harness.put_manifest("m5.json", b"no json")
    harness.put_manifest("m6.json", b"")
    harness.run_once()
    for _ in range(2):
        report = erase(harness)
        assert sorted((each.manifest_id, each.why[:9]) for each in report.refused) == [
            ("m1", "its messa"),
            ("m2", "its messa"),
            ("m3", "its messa"),
            ("m5", "no file t"),
        ]
        assert shown(report.inputs) == [(f"x-{ALICE}.ndjson", False), ("a.ndjson", False)]
        assert [each.objects for each in report.places if each.place == harness.layout.failed_folder] == [12]
    for name in ("m1", "m3", "m5"):
        harness.store.delete([harness.layout.failed_manifest(name), harness.layout.failure_reason(name)])
    report = erase(harness)  # an operator did what it said; the ledger keeps the messages
    assert [(each.manifest_id, "the ledger keeps" in each.why) for each in report.refused] == [
        (name, True) for name in ("m1", "m2", "m3")
    ]
    assert harness.verification().discrepancies == []


def test_a_dead_letter_that_is_too_long_to_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named."""
    monkeypatch.setattr(manifest_parsing, "MAX_MANIFEST_BYTES", 99)
    harness = Harness()
    harness.put_manifest("m1.json", b" " * 100)
    harness.run_once()
    assert ["(too_big)" in each.why for each in erase(harness).refused] == [True]


def refused(uris: list[str]) -> bytes:
    """A manifest with these files, already in JSON."""
    files = ", ".join(f'{{"uri": "{uri}"}}' for uri in uris)
    return f'{{"version": 1, "manifest_id": "m", "date": "{DAY}", "files": [{files}]}}'.encode()
