"""Files that `input.exclude` matches are no input, however they are found."""

from datetime import UTC, datetime
from functools import partial

import pytest

from compactor.core.documents.manifest_parsing import ManifestRules
from compactor.core.errors import SettingsError
from compactor.settings.compact_paths import parse_exclusions
from compactor.settings.settings import parse_settings
from compactor.sources.input_files import EVERYTHING
from compactor.sources.inventory.planning import Rate
from compactor.sources.inventory.reading import InventoryReader
from compactor.sources.inventory.rows import files_in_scope
from compactor.wiring import finding, operating
from tests.support.building import build, put
from tests.support.harness import Harness
from tests.support.inventories import BUCKET, MANIFEST, put_inventory, row

DAY = datetime(2025, 12, 30, tzinfo=UTC)
PLACES = {"paths": {"manifests": "/m", "output": "/o", "state": "/s"}, "input": {"allowed_prefixes": ["/raw"]}}


@pytest.mark.parametrize(
    ("pattern", "excluded", "others"),
    [
        ("*.csv", ["/raw/a.csv", "/raw/x/y/b.csv", "s3://b/c.csv"], ["/raw/a.csv.gz", "/raw/a.csv/part"]),
        ("a?[0-9]", ["/raw/ab1"], ["/raw/abc", "/raw/a/1"]),
        ("/raw/*.csv", ["/raw/a.csv", "/raw/a.csv/part", "file:///raw/a.csv"], ["/raw/x/a.csv", "/other/raw/a.csv"]),
        ("/raw/**/old", ["/raw/old/a", "/raw/x/y/old/b"], ["/raw/older/a"]),
        ("/raw/x", ["/raw/x", "/raw/x/a"], ["/raw/xa"]),
        ("s3://b/raw/**/*.csv", ["s3://b/raw/a.csv", "s3a://b/raw/x/a.csv"], ["s3://c/raw/a.csv", "/b/raw/a.csv"]),
        ("/raw/[[]1]", ["/raw/[1]"], ["/raw/1"]),
    ],
)
def test_what_a_pattern_matches(pattern: str, excluded: list[str], others: list[str]) -> None:
    """Without a slash it is that of a name, else that of a path and of what lies below."""
    rules = ManifestRules(exclude=("none", pattern))
    assert [uri for uri in (*excluded, *others) if rules.excludes(uri)] == excluded
    assert not any(ManifestRules().excludes(uri) for uri in excluded)


def test_patterns_as_a_user_types_them(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths begin at the current folder; what is there is meant literally; all faults come at once."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "[1]*").touch()
    typed = ["*.csv", "logs/*.txt", "logs/[1]*", "logs/", "s3://bkt/x/**/*.csv", "*.csv"]
    assert parse_exclusions(typed) == (
        *("*.csv", f"{tmp_path}/logs/*.txt", f"{tmp_path}/logs/[[]1][*]", f"{tmp_path}/logs"),
        "s3://bkt/x/**/*.csv",
    )
    with pytest.raises(SettingsError) as caught:
        parse_exclusions(["s3://B!/x", "~/y"])
    assert [fault.partition(":")[0] for fault in caught.value.faults] == ["--exclude"] * 2


@pytest.mark.parametrize("pattern", ["old/*.csv", "[z-a]"])
def test_a_pattern_that_can_match_nothing_is_a_fault(pattern: str) -> None:
    """A path has to be a whole one."""
    document = {**PLACES, "input": {**PLACES["input"], "exclude": [pattern]}}
    with pytest.raises(SettingsError, match=r"input\.exclude"):
        parse_settings(document)


def test_announced_listed_and_inventoried_files() -> None:
    """They are counted as `excluded`, and `trace` says so; the others are planned."""
    harness = Harness(root="s3://lake", reading={"exclude": ["*.csv"]})
    for name in ("a.ndjson", "b.csv"):
        harness.store.put(f"s3://lake/raw/{name}", b'{"id": 1}\n')
    app = harness.app()
    report = build(harness, put("a.ndjson"), put("b.csv"))
    assert (report.plans[""].candidates, report.plans[""].skipped) == (1, {"excluded": 1})
    plan = finding.plan(app, "s3://lake/raw", dry_run=True)
    assert (plan.files, plan.skipped) == (1, {"excluded": 1})
    assert (
        operating.tracer(app).trace("s3://lake/raw/b.csv").message
        == "no plan takes it: matches a pattern in input.exclude"
    )
    harness = Harness(root=f"s3://{BUCKET}", reading={"exclude": ["*.csv"]})
    rows = [row(f"raw/{name}", modified_at=DAY) for name in ("a.ndjson", "b.csv")]
    put_inventory(harness.store, rows)
    app, reader = harness.app(), InventoryReader(harness.store)
    inventory = reader.open(MANIFEST)
    found = partial(
        files_in_scope, inventory, reader.rows(inventory), (f"s3://{BUCKET}/raw/",), EVERYTHING, app.state.rules
    )
    plan = finding.plan_inventory(app, found, Rate(is_paced=False), on_wait=lambda _: None, dry_run=True)
    assert plan.skipped == {"excluded": 1}
