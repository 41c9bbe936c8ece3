"""A plan in batches: what it writes depends neither on their size nor on the history, and it keeps little in memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.sources.candidates import Candidate, Group
from compactor.sources.claiming import claim_key
from compactor.sources.packing import Packing
from compactor.sources.plan import Plan
from compactor.sources.unplanned import Unplanned
from compactor.wiring import finding, planning
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, Harness, written
from tests.support.memory_store import MemoryClaims

DAYS = ("2025-12-30", "2025-12-31", "2026-01-01", "undated")
LINE = b'{"id": "1"}\n'
TARGET = 3 * len(LINE)

Earlier = Literal["nothing", "claimed", "done", "done_without_claim", "named", "replaced"]
SIZES = st.lists(st.integers(0, 40), max_size=40)


@dataclass(frozen=True)
class Listed:
    """A file, and what became of it before the plan."""

    day: str
    lines: int
    earlier: Earlier = "nothing"


LISTED = st.lists(
    st.builds(
        Listed,
        day=st.sampled_from(DAYS),
        lines=st.integers(1, 5),
        earlier=st.sampled_from(["nothing", "nothing", "claimed", "done", "done_without_claim", "named", "replaced"]),
    ),
    max_size=14,
)


def lake(files: Sequence[Listed]) -> Harness:
    """A lake with these files. The place of a file in the listing tells nothing of its day."""
    harness = Harness(builder={"target_manifest_bytes": TARGET}, root="s3://lake")

    def put(*earlier: Earlier, more: int = 0) -> list[ManifestFile]:
        found = [(number, each) for number, each in enumerate(files) if each.earlier in earlier]
        return [harness.file(name_of(number, each), LINE * (each.lines + more)) for number, each in found]

    if put("done_without_claim"):
        finding.plan(harness.app(), "s3://lake/raw")
        harness.run_once()
        harness.claims = MemoryClaims()
    if put("done", "replaced"):
        finding.plan(harness.app(), "s3://lake/raw")
        harness.run_once()
    if put("claimed"):
        finding.plan(harness.app(), "s3://lake/raw")
    if named := put("named"):
        harness.put_manifest("foreign.json", harness.manifest("foreign", named).to_json())
    put("replaced", more=1)
    put("nothing")
    return harness


def name_of(number: int, file: Listed) -> str:
    return f"{number:02d}/{file.day}.ndjson"


def plan(harness: Harness, page_files: int, most: int | None = None, *, dry_run: bool = False) -> Plan:
    app = harness.app()
    using = replace(planning.planner(app), page_files=page_files)
    return finding.plan(app, "s3://lake/raw", limit=most, dry_run=dry_run, using=using)


def named(harness: Harness, made: Plan) -> list[tuple[str, list[str]]]:
    """The date and the files of each manifest that a plan wrote."""
    return [(each.date, [file.uri for file in each.files]) for each in written(harness, made.manifests)]


def figures(made: Plan) -> dict[str, object]:
    """What a plan tells, apart from what a dry run and what its last page cannot know."""
    told = {each.name: getattr(made, each.name) for each in fields(Plan)}
    told["manifests"] = [replace(each, manifest_id="") for each in made.manifests]
    return {name: told[name] for name in told.keys() - {"dry_run"}}


@settings(max_examples=15, deadline=None)
@given(files=LISTED, page_files=st.integers(1, 6), most=st.none() | st.integers(1, 4))
def test_any_batch_size_gives_the_same_plan(files: list[Listed], page_files: int, most: int | None) -> None:
    """Days in any order, files that are claimed, done, in foreign manifests or replaced: each new version once."""
    whole, parts = lake(files), lake(files)
    shown = plan(parts, page_files, most, dry_run=True)
    one, other = plan(whole, 1000, most), plan(parts, page_files, most)
    assert named(whole, one) == named(parts, other)
    assert figures(other) == figures(shown)
    if most is None:
        assert figures(one) == figures(other)
        new = [
            f"s3://lake/raw/{name_of(n, each)}"
            for n, each in enumerate(files)
            if each.earlier in {"nothing", "replaced"}
        ]
        assert Counter(uri for _, uris in named(parts, other) for uri in uris) == Counter(new)
        parts.run_once()
        assert plan(parts, page_files).planned_before == len(files)


@given(sizes=SIZES, cuts=st.lists(st.integers(1, 9), max_size=40))
def test_what_does_not_fill_a_manifest_goes_on(sizes: list[int], cuts: list[int]) -> None:
    """Files that come in batches are cut as all at once."""
    files = [ManifestFile(uri=f"s3://b/{number:03d}", size_bytes=size) for number, size in enumerate(sizes)]
    left = [Candidate.of_file(DAY, each) for each in files]
    at_once, packing, groups = Packing(DAY, 50), Packing(DAY, 50), list[Group]()
    whole = [*at_once.add(left), *at_once.end()]
    for cut in [*cuts, len(files)]:
        groups += packing.add(left[:cut])
        left = left[cut:]
    groups += packing.end()
    assert groups == whole
    assert packing.end() == []


class WatchedStore(FaultyStore):
    """A store that keeps which objects were read, and how many files the manifests name that were written."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness.store)
        self.manifests_folder, self.recent_folder = harness.layout.manifests_folder, harness.layout.recent_folder
        self.reads, self.written = list[str](), list[int]()

    def read(self, uri: str, *, etag: str | None = None) -> bytes:
        self.reads += [] if uri.startswith(self.recent_folder) else [uri]
        return super().read(uri, etag=etag)

    def create(self, uri: str, data: bytes) -> bool:
        if uri.startswith(self.manifests_folder):
            self.written.append(len(Manifest.model_validate_json(data).files))
        return super().create(uri, data)


def test_few_files_are_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of a batch are read, and manifests of a batch are written, one after the other."""
    harness = lake([Listed(DAYS[number % 3], 1) for number in range(24)])
    store, at_once = WatchedStore(harness), list[int]()
    in_order = Unplanned.in_order

    def watched(files: Unplanned, groups: Sequence[Group]) -> Sequence[Group]:
        at_once.append(sum(len(group.files) for group in groups))
        return in_order(files, groups)

    monkeypatch.setattr(Unplanned, "in_order", watched)
    app = harness.app(store=store)
    using = replace(planning.planner(app), page_files=4, groups_at_once=1)
    assert finding.plan(app, "s3://lake/raw", using=using).files == sum(store.written) == 24
    assert store.written == [3, 3, 2] * 3
    assert max(at_once) <= 4 + 3


@pytest.mark.parametrize("new_files", [0, 1])
def test_a_long_history_costs_a_plan_nothing(new_files: int) -> None:
    """What was done on other days is not read again, whether there is something new or not."""
    costs = []
    for days in (1, 20):
        harness = Harness(root="s3://lake")
        for number in range(days):
            harness.file(f"old/2025-11-{number + 1:02d}.ndjson", LINE)
        harness.file(f"now/{DAY}-a.ndjson", LINE)
        finding.plan(harness.app(), "s3://lake/raw")
        harness.run_once()
        for number in range(new_files):
            harness.file(f"now/{DAY}-new-{number}.ndjson", LINE)
        store = WatchedStore(harness)
        made = finding.plan(harness.app(store=store), "s3://lake/raw/now")
        assert (made.planned_before, made.files) == (1, new_files)
        costs.append((len(store.reads), store.calls["list"], store.calls["stat"], store.calls["create"]))
    assert costs[0] == costs[1]


def test_a_file_with_rows_whose_claim_is_free() -> None:
    """A file whose claim is free is planned, unless a manifest made rows of it: then that manifest has it."""
    harness = Harness(root="s3://lake")
    file = harness.file(f"{DAY}-a.ndjson", LINE)
    harness.put_manifest("foreign.json", harness.manifest("foreign", [file]).to_json())
    app = harness.app()
    planning.claimer(app).claim([claim_key(file)], "of one that died")
    harness.clock.advance(1e6)
    assert finding.plan(harness.app(), "s3://lake/raw").planned_before == 1
    harness.run_once()
    harness.clock.advance(1e6)
    assert finding.plan(harness.app(), "s3://lake/raw").planned_before == 1
    harness.check_exact()
