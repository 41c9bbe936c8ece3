"""`verify` names every deliberate damage: to output, rejects and records, in memory and on a local disk."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.adapters.local.store import LocalStore
from compactor.core.documents.changes import Commit
from compactor.core.layout import ManifestKey
from compactor.ops.verify.report import VerifyResult
from compactor.wiring import operating
from tests.support.harness import DAY, FLAWED, GOOD, Harness
from tests.support.sampling import few_rows

M1 = ManifestKey(DAY, "m1")

OTHER_DAY = "2026-01-03"
CORRUPT = b'{"manifest_id": "m1", '

Change = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True)
class Damage:
    """One way to damage a small ledger.

    Attributes:
        name: What is done.
        do: Does it; gives back the places that have to be named.
        deep: Only `--deep` can see it.
        by_day: Whether the verification of that date alone finds all of it.
    """

    name: str
    do: Callable[[Harness], set[str]]
    deep: bool = False
    by_day: bool = True


@pytest.fixture(params=["memory", "disk"])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    """Two manifests that are done: one of four rows in two files and two rejects, one of two rows."""
    schema = {"metadata_columns": ["_source_file"]}
    in_memory = request.param == "memory"
    made = Harness(schema=schema) if in_memory else Harness(schema=schema, root=str(tmp_path), store=LocalStore())
    made.deliver("m1", GOOD, FLAWED)
    made.run_once()
    made.deliver("m2", GOOD)
    made.run_once()
    return made


def shallow(harness: Harness) -> VerifyResult:
    return operating.verifier(harness.app()).verify_all()


def of_day(harness: Harness, day: str = DAY) -> VerifyResult:
    return operating.verifier(harness.app()).verify_date(day)


def wheres(report: VerifyResult) -> set[str]:
    return {each.where for each in report.discrepancies}


def commit(harness: Harness) -> Commit:
    return harness.commit("m1")


def replace(harness: Harness, uri: str, change: Callable[[bytes], bytes]) -> set[str]:
    harness.store.put(uri, change(harness.store.read(uri)))
    return {uri}


def without(harness: Harness, *uris: str) -> set[str]:
    for uri in uris:
        assert harness.store.stat(uri) is not None, uri
    harness.store.delete(uris)
    return set(uris)


def copied(harness: Harness, uri: str, target: str) -> set[str]:
    harness.store.copy(uri, target)
    return {target}


def rewrite(harness: Harness, uri: str, change: Change) -> None:
    """Change the values of a table, and the size in the commit, so that only values differ."""
    sink = pa.BufferOutputStream()
    pq.write_table(change(pq.read_table(io.BytesIO(harness.store.read(uri)))), sink)
    harness.store.put(uri, sink.getvalue().to_pybytes())
    said = commit(harness)
    info = harness.store.stat(uri)
    assert info is not None
    files = {
        kind: [
            file.model_copy(update={"size_bytes": info.size_bytes}) if file.final == uri else file
            for file in getattr(said, kind)
        ]
        for kind in ("outputs", "rejects")
    }
    harness.store.put(harness.layout.outcome(M1), said.model_copy(update=files).model_dump_json().encode())


def valued(name: str, value: object) -> Change:
    def change(table: pa.Table) -> pa.Table:
        values = table.column(name).to_pylist()
        assert values[0] != value
        field = table.schema.field(name)
        return table.set_column(table.schema.get_field_index(name), field, pa.array([value, *values[1:]], field.type))

    return change


def middle_cut(data: bytes) -> bytes:
    return data[:20] + data[40:]


def middle_flipped(data: bytes) -> bytes:
    return data[:30] + bytes(byte ^ 0xFF for byte in data[30:34]) + data[34:]


def output(harness: Harness) -> str:
    return commit(harness).outputs[0].final


def rejects(harness: Harness) -> str:
    return commit(harness).rejects[0].final


def source(harness: Harness, number: int = 0) -> str:
    return f"{harness.root}/raw/m1-{number}.ndjson"


def of_rows(do: Callable[[Harness, str], set[str]]) -> Callable[[Harness], set[str]]:
    return lambda harness: do(harness, output(harness))


def changed(change: Change, uri: Callable[[Harness], str] = output, number: int = 0) -> Callable[[Harness], set[str]]:
    def do(harness: Harness) -> set[str]:
        rewrite(harness, uri(harness), change)
        return {source(harness, number)}

    return do


def record(name: str) -> Callable[[Harness], str]:
    return lambda harness: harness.layout.ledger_records(M1) + name


def missing(place: Callable[[Harness], str]) -> Callable[[Harness], set[str]]:
    return lambda harness: without(harness, place(harness))


def corrupt(place: Callable[[Harness], str]) -> Callable[[Harness], set[str]]:
    return lambda harness: replace(harness, place(harness), lambda _: CORRUPT)


def accepted(harness: Harness) -> str:
    return harness.layout.accepted("m1")


def schema(harness: Harness) -> str:
    return harness.layout.schema(commit(harness).schema_version)


def no_folder(*further: Callable[[Harness], str]) -> Callable[[Harness], set[str]]:
    """No records at all; the files that they named are surplus then."""

    def do(harness: Harness) -> set[str]:
        files = {file.final for file in (*commit(harness).outputs, *commit(harness).rejects)}
        folder = harness.layout.ledger_records(M1)
        without(harness, *(info.uri for info in harness.store.list(folder)), *(place(harness) for place in further))
        return {folder, *files}

    return do


def archived(harness: Harness) -> str:
    return harness.layout.archived_manifest(M1)


def never_done(harness: Harness) -> set[str]:
    without(harness, archived(harness))
    return without(harness, harness.layout.done(M1))


def outcome_of_another(harness: Harness) -> set[str]:
    files = {file.final for file in (*commit(harness).outputs, *commit(harness).rejects)}
    copied(harness, harness.layout.outcome(ManifestKey(DAY, "m2")), harness.layout.outcome(M1))
    return {harness.layout.outcome(M1), *files}


def file_left_out(harness: Harness) -> set[str]:
    said = commit(harness)
    harness.store.put(
        harness.layout.outcome(M1), said.model_copy(update={"files": said.files[:1]}).model_dump_json().encode()
    )
    return {harness.layout.outcome(M1), "outputs of the commit", "rejects of the commit"}


FILES: dict[str, Callable[[Harness], str]] = {"output": output, "rejects": rejects}

DAMAGES = [
    *(
        damage
        for kind, place in FILES.items()
        for damage in (
            Damage(f"{kind}: deleted", missing(place)),
            Damage(f"{kind}: end cut off", lambda w, at=place: replace(w, at(w), lambda data: data[:-9])),
            Damage(f"{kind}: cut inside", lambda w, at=place: replace(w, at(w), middle_cut)),
            Damage(f"{kind}: emptied", lambda w, at=place: replace(w, at(w), lambda _: b"")),
            Damage(f"{kind}: another file", lambda w, at=place: replace(w, at(w), lambda _: b"PAR1")),
            Damage(
                f"{kind}: doubled as another part",
                lambda w, at=place: copied(w, at(w), at(w).replace("-00000.", "-00007.")),
            ),
            Damage(
                f"{kind}: doubled on a date without records",
                lambda w, at=place: copied(w, at(w), at(w).replace(DAY, OTHER_DAY)),
                by_day=False,
            ),
            Damage(
                f"{kind}: doubled under a name of no manifest",
                lambda w, at=place: copied(w, at(w), at(w).replace("m1-00000", "copy")),
            ),
            Damage(
                f"{kind}: doubled under the name of an unknown manifest",
                lambda w, at=place: copied(w, at(w), at(w).replace("m1-", "m9-")),
            ),
            Damage(
                f"{kind}: doubled in a folder below",
                lambda w, at=place: copied(w, at(w), at(w).replace("m1-", "below/m1-")),
            ),
        )
    ),
    Damage("output: doubled as no Parquet", lambda w: copied(w, output(w), output(w) + ".bak")),
    Damage("output: a value changed", changed(valued("amount", "1.1")), deep=True),
    Damage("output: null for a value", changed(valued("id", None)), deep=True),
    Damage("output: a value for null", changed(valued("late", "")), deep=True),
    Damage(
        "output: one row lost, another doubled",
        changed(lambda table: pa.concat_tables([table.slice(1), table.slice(1)])),
        deep=True,
    ),
    Damage(
        "output: bytes changed inside", lambda w: (replace(w, output(w), middle_flipped), {"contents"})[1], deep=True
    ),
    Damage("rejects: another byte", changed(valued("raw", b"no jsoN"), rejects, 1), deep=True),
    Damage("rejects: another line", changed(valued("line_number", 3), rejects, 1), deep=True),
    Damage("rejects: another reason", changed(valued("reason", "too_deep"), rejects, 1), deep=True),
    Damage(
        "output: other columns", lambda w: (rewrite(w, output(w), lambda t: t.drop_columns(["late"])), {output(w)})[1]
    ),
    Damage("output: fewer rows", lambda w: (rewrite(w, output(w), lambda t: t.slice(0, 1)), {output(w)})[1]),
    *(Damage(f"missing {name}", missing(record(name))) for name in ("attempt-1.json", "outcome.json", "done.json")),
    *(Damage(f"corrupt {name}", corrupt(record(name))) for name in ("attempt-1.json", "outcome.json", "done.json")),
    Damage("missing done of one that is neither archived, open nor waiting", never_done),
    Damage("missing record of acceptance", missing(accepted)),
    Damage("corrupt record of acceptance", corrupt(accepted)),
    Damage("no records of one that is accepted and archived", no_folder()),
    Damage("no records of one that is accepted", no_folder(archived), by_day=False),
    Damage("no records of one that is archived", no_folder(accepted)),
    Damage("outcome of another manifest", outcome_of_another),
    Damage("commit that leaves a file out", file_left_out),
    Damage("missing schema version", missing(schema)),
    Damage("corrupt schema version", corrupt(schema)),
]
COUNTED_OUT = {"missing outcome.json"}
"""The files of a commit that is gone are surplus."""

ONE = {
    "output: deleted",
    "output: cut inside",
    "output: doubled as another part",
    "rejects: doubled as another part",
    "missing attempt-1.json",
    "missing done.json",
    "corrupt done.json",
    "missing record of acceptance",
}
DAMAGES_TO_ONE = [each for each in DAMAGES if each.name in ONE]


@pytest.mark.parametrize(
    ("harness", "damage"),
    [("memory", damage) for damage in DAMAGES] + few_rows(product(["disk"], DAMAGES), 8),
    indirect=["harness"],
    ids=[f"{damage.name}-{place}" for place, damage in product(["memory", "disk"], DAMAGES)],
)
def test_damage_is_named(harness: Harness, damage: Damage) -> None:
    """Each damage is named, and nothing sound is; damage to values is found only by a deep verification."""
    files = {file.final for file in (*commit(harness).outputs, *commit(harness).rejects)}
    named = damage.do(harness)
    if damage.name in COUNTED_OUT:
        named |= files
    assert wheres(shallow(harness)) == (set() if damage.deep else named)
    if damage.by_day and not damage.deep:
        assert wheres(of_day(harness)) == named
    deep = harness.verification()
    assert named <= wheres(deep)
    assert {each.manifest_id for each in deep.discrepancies} <= {"m1", ""}
    assert deep.needs_operator
    assert (deep.manifests + deep.unfinished) >= 1  # the other manifest was verified all the same


@pytest.mark.parametrize(
    ("harness", "damage"),
    [("memory", damage) for damage in DAMAGES_TO_ONE] + few_rows(product(["disk"], DAMAGES_TO_ONE), 2),
    indirect=["harness"],
    ids=[f"{damage.name}-{place}" for place, damage in product(["memory", "disk"], DAMAGES_TO_ONE)],
)
def test_damage_to_one_manifest(harness: Harness, damage: Damage) -> None:
    """The verification of the damaged manifest alone names the damage; that of its neighbour names nothing."""
    named = damage.do(harness)
    app = harness.app()
    assert wheres(operating.verifier(app).verify_manifests([M1])) == named
    assert wheres(operating.verifier(app).verify_manifests([ManifestKey(DAY, "m2")])) == set()


def test_rows_that_changed_places(harness: Harness) -> None:
    """Two rows that change places between the output files of one manifest are no discrepancy."""
    first, second = (file.final for file in commit(harness).outputs)
    tables = [pq.read_table(io.BytesIO(harness.store.read(uri))) for uri in (first, second)]
    rewrite(harness, first, lambda table: pa.concat_tables([table.slice(0, 1), tables[1].slice(0, 1)]))
    rewrite(harness, second, lambda table: pa.concat_tables([table.slice(1), tables[0].slice(1)]))
    assert harness.verification().discrepancies == []


def test_no_damage(harness: Harness) -> None:
    """Without damage there is no discrepancy: by date, in all, and by value."""
    for report in (shallow(harness), of_day(harness), of_day(harness, OTHER_DAY), harness.verification()):
        assert (report.discrepancies, report.needs_operator) == ([], False)
