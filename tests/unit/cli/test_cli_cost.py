"""Promises of `compactor cost`: an estimate without any settings, and with them what runs cost."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compactor.adapters.local.store import LocalStore
from compactor.cli.entry import compactor as command
from compactor.cost.prices import DPU_PER_WORKER, GLUE_VERSIONS
from compactor.wiring import engine_choice
from tests.support.harness import GOOD, Harness
from tests.support.settings_files import write_settings

README = Path(__file__).parents[3] / "README.md"


def call(*arguments: str, config: Path | None = None, verb: str = "estimate") -> Result:
    words = [*([] if config is None else ["--config", str(config)]), "cost", verb, *arguments]
    return CliRunner().invoke(command, words, env={"COMPACTOR_CONFIG": None, "COLUMNS": "80"})


def document(*arguments: str, config: Path | None = None, verb: str = "estimate") -> dict[str, Any]:
    result = call(*arguments, "--json", config=config, verb=verb)
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder without the result of a benchmark."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """What a benchmark of both engines has left, in another place than the usual one."""
    path = tmp_path / "bench.json"
    path.write_text(
        '{"megabytes_per_second": {"spark": 172, "native": 640}, "cores": 2, "machine": "Linux x86_64",'
        ' "measured_at": "2026-11-21T10:00:00Z"}'
    )
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Settings with places of their own, and half the usual manifest."""
    paths = {name: f"{tmp_path}/{name}" for name in ("manifests", "output", "state")}
    return write_settings(tmp_path, paths=paths, builder={"target_manifest_bytes": 536_870_912})


def test_as_json() -> None:
    """The document holds load, workers, every item with its price and source, totals and the comparison."""
    found = document("--workers", "4", "--worker-type", "G.1X", "--glue-version", "5.1")
    assert found["load"] == {"files_per_hour": 200_000, "file_bytes": 3_670_016}
    assert found["job"] == {
        "worker_type": "G.1X",
        "workers": 4,
        "glue_version": "5.1",
        "runtime": "glue",
        "dpu": 4,
        "dollars_per_hour": 1.76,
        "dollars_per_month": 1284.8,
    }
    assert found["lines"][0]["dollars_per_hour"] == pytest.approx(1.76)
    assert found["dollars_per_hour"] == pytest.approx(sum(line["dollars_per_hour"] for line in found["lines"]))
    assert found["dollars_per_month"] == pytest.approx(730 * found["dollars_per_hour"])
    assert found["dollars_per_terabyte"] == pytest.approx(found["dollars_per_hour"] / 0.7340032)
    assert (found["compared"]["workers"], found["compared"]["worker_type"]) == (10, "G.2X")
    assert found["compared"]["dollars_per_month"] == pytest.approx(6424)
    services = [line["service"] for line in found["lines"]]
    assert list(dict.fromkeys(services)) == ["Glue", "S3", "SQS", "DynamoDB", "Lambda", "CloudWatch"]
    assert {line["basis"] for line in found["lines"]} == {"given", "counted", "assumed"}
    assert all(line["price"]["source"] and line["price"]["as_of"] for line in found["lines"])


def test_jobs_side_by_side_add_requests_and_metrics() -> None:
    """Each has its heartbeats, its look at those of the others, its micro-batches and its alarms."""
    one, four = document(), document("--shards", "4")
    assert (one["shape"]["shards"], four["shape"]["shards"]) == (1, 4)
    quantities = [{line["item"]: line["quantity"] for line in each["lines"]} for each in (one, four)]
    added = {item: quantity - quantities[0].get(item, 0) for item, quantity in quantities[1].items()}
    assert added["GET, compactor"] == 3 * 720 + 4 * 4 * 720
    assert added["PUT, compactor"] == 3 * 360 + 4 * 720
    assert (added["alarms"], added["DPU-hours"]) == (16, 0)


def test_as_text() -> None:
    """Without settings, the screen says what it costs, by what prices, and what is left out."""
    result = call()
    assert result.exit_code == 0
    for words in (
        "200,000 files an hour",
        "3 DPU",
        "$6.16 an hour, $4,496.80 a month",
        "check them",
        "not counted",
        "these workers cost 0.15 times that",
    ):
        assert words in result.stdout
    assert "\nmeasured " not in result.stdout


def test_other_loads(config: Path) -> None:
    """Half the files cost half the requests; half the size of a manifest makes twice as many."""
    whole, half = document(), document("--files-per-hour", "100000")
    items = {line["item"]: line["quantity"] for line in whole["lines"]}
    assert {line["item"]: line["quantity"] for line in half["lines"]}["claims written"] == items["claims written"] / 2
    assert document(config=config)["manifests_per_hour"] == pytest.approx(2 * whole["manifests_per_hour"])


@pytest.mark.parametrize(("is_installed", "usual"), [(True, "native"), (False, "spark")])
def test_engines(config: Path, monkeypatch: pytest.MonkeyPatch, is_installed: bool, usual: str) -> None:
    """The option names the engine, else the settings do, else it is what would run here; the screen says which."""
    monkeypatch.setattr(engine_choice, "is_installed", lambda: is_installed)
    assert document()["shape"]["engine"] == document(config=config)["shape"]["engine"] == usual
    assert f"engine  {usual};" in call().stdout
    text = config.read_text()
    for named, other, item in (("native", "spark", "PUT, native"), ("spark", "native", "PUT, Spark")):
        config.write_text(f'{text}[convert]\nengine = "{named}"\n')
        found = document(config=config)
        assert found["shape"]["engine"] == named
        assert item in [line["item"] for line in found["lines"]]
        assert document("--engine", other, config=config)["shape"]["engine"] == other
        assert f"engine  {other};" in call("--engine", other, config=config).stdout


def test_what_runs_cost(config: Path, tmp_path: Path) -> None:
    """With a state to read, bytes and time come from the ledger, and the workers' price from the options."""
    assert document(config=config, verb="actual")["measured"] is None
    assert call(config=config, verb="actual").stdout == "Nothing was compacted yet.\n"
    harness = Harness(root=str(tmp_path), store=LocalStore())
    uris = [harness.deliver(name, GOOD, GOOD) for name in ("m1", "m2")]

    def on_crash_point(step: str, manifest_id: str) -> None:
        if step == "converted":
            harness.clock.advance({"m1": 90, "m2": 30}[manifest_id])

    runner = harness.runner(on_crash_point=on_crash_point)
    runner.run(uris[:1])
    harness.clock.advance(240)
    runner.run(uris[1:])
    found = document(config=config, verb="actual")["measured"]
    assert (found["commits"], found["input_files"], found["input_bytes"]) == (2, 4, 4 * len(GOOD))
    assert (found["at_work_seconds"], found["elapsed_seconds"]) == (120, 360)
    assert found["dollars_at_work"] == pytest.approx(0.924 / 30)
    assert found["dollars_per_terabyte_elapsed"] == pytest.approx(0.924 / 10 / (4 * len(GOOD) / 1e12))
    shown = call("--glue-version", "5.1", config=config, verb="actual").stdout
    assert "2 latest commits, 2026-01-02 12:00:00 to 01-02 12:06:00 UTC: 4 files" in shown
    assert "with 3 x G.1X, Glue 5.1: $0.04" in shown


def test_prices_by_region(config: Path) -> None:
    """The settings' region counts, or the option; the screen says where there are no prices."""
    plain = document(config=config)
    assert (plain["region"], plain["has_prices_of_region"]) == ("us-east-1", True)
    text = config.read_text()
    config.write_text(f'{text}[aws]\nregion = "eu-central-1"\n')
    german = document(config=config)
    assert (german["region"], german["prices"]["s3_put"]["dollars"]) == ("eu-central-1", 0.0054)
    assert document("--region", "us-west-2", config=config)["prices"]["s3_put"]["dollars"] == 0.005
    assert document("--region", "mars-1")["has_prices_of_region"] is False
    assert "list prices of us-east-1, as there are none for mars-1, as of" in call("--region", "mars-1").stdout
    assert "mars\x1b" not in call("--region", "mars\x1b[31m").stdout


def test_what_is_kept_and_added() -> None:
    """Days, a key and EventBridge are options; what is kept and a NAT gateway are beside the total."""
    found = document("--input-days", "1", "--output-days", "0", "--customer-key", "--event-bridge")
    assert [line["quantity"] > 0 for line in found["kept"]] == [True, False, True, True]
    assert {line["service"] for line in found["lines"]} >= {"KMS", "EventBridge"}
    assert found["dollars_per_hour"] == pytest.approx(sum(line["dollars_per_hour"] for line in found["lines"]))
    assert found["nat"]["dollars_per_month"] > 20_000
    shown = call("--input-days", "1").stdout
    assert "input of 1 days $377.34" in shown
    assert "a gateway endpoint for S3 is free" in shown


def test_the_last_days(config: Path, tmp_path: Path) -> None:
    """The load, and what was paid for it, come from all that was compacted in the last days."""
    none = call("--days", "7", config=config, verb="actual")
    assert (none.exit_code, none.stdout) == (1, "")
    assert "nothing was compacted in the last 7 days -> expected --days N" in none.stderr
    harness = Harness(root=str(tmp_path), store=LocalStore())
    harness.clock.advance((datetime.now(UTC) - harness.clock.now()).total_seconds() - 3600)
    harness.runner().run([harness.deliver(name, GOOD, GOOD) for name in ("m1", "m2")])
    found = document("--days", "2", config=config, verb="actual")
    assert (found["measured"]["commits"], found["measured"]["input_files"]) == (2, 4)
    assert found["estimate"]["load"] == {"files_per_hour": pytest.approx(4 / 48), "file_bytes": len(GOOD)}
    assert found["measured"]["at_work_seconds"] == 60  # Glue bills a minute at least
    assert found["dollars"] == pytest.approx(found["estimate"]["dollars_per_hour"] * 48)
    shown = call("--days", "2", config=config, verb="actual").stdout
    assert "for the period, all services" in shown
    assert "2 commits, " in shown
    assert call("--days", "2", verb="actual").exit_code == 2


def test_workers_by_the_last_benchmark(bench: Path) -> None:
    """For each engine that was measured, the smallest job of each worker type on each version of Glue."""
    assert document()["needed"] is None
    found = document("--bench", str(bench))["needed"]
    assert (found["bench"]["cores"], found["busy_share_at_most"]) == (2, 0.5)
    assert found["engines"]["spark"]["bytes_per_second_per_core"] == 86e6
    jobs = found["engines"]["spark"]["jobs"]
    assert len(jobs) == len(GLUE_VERSIONS) * len(DPU_PER_WORKER)
    of_each = {(worker_type, version) for worker_type in DPU_PER_WORKER for version in GLUE_VERSIONS}
    assert {(job["worker_type"], job["glue_version"]) for job in jobs} == of_each
    (one,) = [job for job in jobs if (job["worker_type"], job["glue_version"]) == ("G.1X", "5.1")]
    # 203.9 MB/s over half of 4 x 86 MB/s takes 2 workers and a driver, at 44 cents each.
    assert (one["workers"], one["vcpu_per_worker"]) == (3, 4)
    assert one["busy_share"] == pytest.approx(203.88978 / (2 * 4 * 86), rel=1e-6)
    assert one["dollars_per_hour"] == pytest.approx(1.32)
    assert one["dollars_per_month"] == pytest.approx(963.6)
    assert one["dollars_per_terabyte"] == pytest.approx(1.32 / 0.7340032)
    assert one["share_of_compared"] == pytest.approx(1.32 / 8.8)


def test_workers_on_the_screen(bench: Path, tmp_path: Path) -> None:
    """The fastest engine comes first; without a result, the screen says how to get one."""
    assert "make bench" in call().stdout
    usual = tmp_path / ".bench" / "last.json"
    usual.parent.mkdir()
    bench.rename(usual)
    shown = call("--glue-version", "5.1").stdout
    assert "make bench" not in shown
    assert shown.index("native, 320.0 MB/s a core") < shown.index("spark, 86.0 MB/s a core")
    assert "640 MB/s on 2 cores (Linux x86_64), 2026-11-21" in shown
    assert "G.1X           3    4  30%      1.32       964   1.80        0.15" in shown
    assert "at most 50% busy" in shown


BROKEN = {
    "nothing": b"",
    "no JSON": b"{",
    "no engine": b'{"megabytes_per_second": {}, "cores": 2, "machine": "m", "measured_at": "2026-11-21T10:00:00Z"}',
    "no cores": b'{"megabytes_per_second": {"native": 1}, "machine": "m", "measured_at": "2026-11-21T10:00:00Z"}',
    "no speed": b'{"megabytes_per_second": {"native": 0}, "cores": 2, "machine": "m", '
    b'"measured_at": "2026-11-21T10:00:00Z"}',
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_result(data: bytes, tmp_path: Path) -> None:
    """A result that cannot be understood is named, with what was expected, and nothing is estimated from it."""
    path = tmp_path / "broken.json"
    path.write_bytes(data)
    result = call("--bench", str(path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{path}: " in result.stderr
    assert "expected a result that `python -m bench` writes" in result.stderr


def test_a_result_that_is_not_there(tmp_path: Path) -> None:
    """One that was named has to be there."""
    assert "No such file" in call("--bench", str(tmp_path / "none.json")).stderr


WRONG = [
    ("--workers", "1"),
    ("--workers", "x"),
    ("--files-per-hour", "0"),
    ("--file-bytes", "0"),
    ("--worker-type", "G.3X"),
    ("--glue-version", "7.0"),
    ("--engine", "auto"),
    ("--topic", "sqs"),
    ("--partitions", "0"),
    ("--broker-dollars", "0.5"),
    ("--fan-out",),
]


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    """What no job and no load can be is wrong usage."""
    assert call(*arguments).exit_code == 2


def test_a_topic() -> None:
    """What it costs by itself is beside the total, in text and in JSON."""
    words = ("--topic", "msk-serverless", "--files-per-hour", "1000", "--engine", "native")
    found = document(*words)
    assert [line["item"] for line in found["producers"]] == [
        *("cluster-hours", "partition-hours", "GB written", "GB kept")
    ]
    assert found["dollars_per_hour"] == pytest.approx(sum(line["dollars_per_hour"] for line in found["lines"]))
    assert "gist.github.com" in found["prices"]["msk_serverless_out"]["source"]
    said = call(*words).stdout
    assert "The topic itself, for its producers and all readers; not in the total:" in said
    assert document("--engine", "native")["producers"] == []


def test_the_readme_says_what_it_costs() -> None:
    """The figure of the README is what the command says today; docs/scale.md has its whole output, which is run."""
    found = document("--engine", "native")
    words = f"${found['dollars_per_hour']:.2f} an hour, ${found['dollars_per_terabyte']:.2f} a terabyte"
    assert words in " ".join(README.read_text().split())
