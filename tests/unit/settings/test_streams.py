"""`[[streams]]`: each stream has whole settings of its own, and what several may not share is refused."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings, load_settings, parse_settings

TEXT = """
[paths]
manifests = "s3://work/manifests"
output = "s3://lake/rows"
state = "s3://work/state"

[input]
allowed_prefixes = ["s3://raw"]
max_line_bytes = 1000

[control]
job_name = "jobs"

[[streams]]
name = "orders"
weight = 3

[streams.input]
allowed_prefixes = ["s3://raw/orders", "s3://raw/refunds"]

[streams.schema]
names = "exact"
table = "lake.orders"

[streams.output]
target_file_bytes = 33_554_432

[streams.control]
sla_seconds = 60

[streams.convert]
engine = "spark"

[[streams]]
name = "clicks"
job = "own"

[streams.paths]
output = "s3://other/clicks"

[streams.input]
allowed_prefixes = ["s3://raw/orders/clicks"]
"""


def parsed(text: str = TEXT, **env: str) -> Settings:
    return parse_settings(tomllib.loads(text), env)


def faults(text: str) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        parsed(text)
    return refused.value.faults


def test_each_stream_has_whole_settings() -> None:
    """Its own keys replace the common ones; its places are below the common ones and apart from those of others."""
    settings = parsed()
    orders, clicks = settings.streams
    assert (orders.name, orders.schema.names, orders.control.sla_seconds) == ("orders", "exact", 60)
    assert (orders.convert.engine, orders.output.target_file_bytes) == ("spark", 32 * 1024 * 1024)
    assert (orders.input.max_line_bytes, orders.control.job_name) == (1000, "jobs")
    assert (clicks.schema.names, clicks.control.sla_seconds, clicks.control.job_name) == ("safe", 900, "jobs-clicks")
    layouts = [each.layout() for each in settings.streams]
    assert [each.manifests for each in layouts] == ["s3://work/manifests/orders", "s3://work/manifests/clicks"]
    assert [each.state for each in layouts] == ["s3://work/state/streams/orders", "s3://work/state/streams/clicks"]
    assert [each.output for each in layouts] == ["s3://lake/rows/orders", "s3://other/clicks"]
    assert [each.pending for each in layouts] == ["s3://work/state/pending/orders", "s3://work/state/pending/clicks"]
    assert {each.claims_layout for each in settings.streams} == {settings.layout()}
    assert settings.sharing == (orders,)


def test_a_file_without_streams_has_none() -> None:
    """One stream stays as simple as it was."""
    text = TEXT.partition("[[streams]]")[0]
    settings = parsed(text)
    assert (settings.streams, settings.member, settings.name) == ((), None, "")
    assert settings.claims_layout == settings.layout()
    with pytest.raises(SettingsError, match=r"no \[\[streams\]\]"):
        settings.of_stream("orders")


def test_variables_override_what_is_common() -> None:
    """A variable holds for all streams, but for what a stream sets for itself or has for itself."""
    settings = parsed(
        COMPACTOR_CONTROL__QUEUE_URL="https://sqs/1/queue",
        COMPACTOR_CONTROL__SLA_SECONDS="30",
        COMPACTOR_PATHS__STATE="s3://elsewhere/state",
    )
    orders, clicks = settings.streams
    assert orders.control.queue_url == clicks.control.queue_url == "https://sqs/1/queue"
    assert (orders.control.sla_seconds, clicks.control.sla_seconds) == (60, 30)
    assert orders.paths.state == "s3://elsewhere/state/streams/orders"


def test_a_name_that_is_not_there() -> None:
    """The message lists the streams."""
    with pytest.raises(SettingsError, match="expected one of orders, clicks"):
        parsed().of_stream("click")


def test_places_relative_to_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Local places work as without streams."""
    monkeypatch.chdir(tmp_path)
    text = TEXT.replace("s3://work/", "work/").replace("s3://lake/", "lake/").replace("s3://other/", "other/")
    (tmp_path / "compactor.toml").write_text(text.replace("s3://raw", "raw"))
    orders = load_settings(tmp_path / "compactor.toml", {}).of_stream("orders")
    assert orders.layout().manifests == f"{tmp_path}/work/manifests/orders"
    assert orders.input.allowed_prefixes[0] == f"{tmp_path}/raw/orders"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('name = "clicks"', 'name = "Clicks"', "streams[1].name"),
        ('name = "clicks"', 'name = "orders"', "streams.orders: used 2 times -> expected once"),
        ("weight = 3", "weight = 0", "streams[0].weight: 0 -> expected at least 1"),
        ("weight = 3", "wait = 3", "streams.orders.wait: unknown section"),
        ('table = "lake.orders"', "tables = 1", "streams.orders.schema.tables: unknown key"),
        ("sla_seconds = 60", "sla_seconds = -1", "streams.orders.control.sla_seconds: -1 -> expected more than 0"),
        ("sla_seconds = 60", 'mode = "never"', "streams.orders.control.mode: set for one stream"),
        ("[streams.convert]", "[streams.aws]\nregion = 'x'\n[streams.convert]", "streams.orders.aws.region: set for"),
        ('["s3://raw/orders/clicks"]', '["s3://raw/orders"]', "also belongs to streams.orders"),
        ('["s3://raw/orders/clicks"]', '["s3://other-raw"]', "expected a place within s3://raw"),
        ('["s3://raw/orders/clicks"]', "[]", "streams.clicks.input.allowed_prefixes: not set"),
        ("s3://other/clicks", "s3://lake/rows/orders/x", "does not overlap streams.orders"),
        ("s3://other/clicks", "s3://raw/rows", "does not overlap input.allowed_prefixes[0]"),
        ("s3://other/clicks", "s3://work/state/x", "streams.clicks.paths.output"),
        ('job = "own"', '[streams.schema]\ntable = "lake.orders"', "lake.orders also belongs to streams.orders"),
        ("[[streams]]", "[streams]", "streams -> expected 1 to 100 tables"),
    ],
)
def test_faults_name_the_stream_and_the_key(old: str, new: str, expected: str) -> None:
    """All faults are told at once, each with its stream."""
    text = TEXT.replace(old, new, 1) if new != "[streams]" else TEXT.partition("[[streams]]")[0] + "[streams]\n"
    found = faults(text)
    assert any(expected in each for each in found), found


def test_faults_of_all_streams_come_at_once() -> None:
    """A person corrects them in one go."""
    broken = TEXT.replace("sla_seconds = 60", "sla_seconds = -1").replace('job = "own"', 'job = "mine"')
    found = faults(broken)
    assert len(found) == 2, found


def test_too_many_streams() -> None:
    """More than one deployment can watch are refused."""
    document: dict[str, Any] = tomllib.loads(TEXT)
    document["streams"] = [
        {"name": f"s{number}", "input": {"allowed_prefixes": [f"s3://raw/{number}"]}} for number in range(101)
    ]
    with pytest.raises(SettingsError, match="1 to 100"):
        parse_settings(document)


def test_the_canary_is_one_stream_with_its_own_job() -> None:
    """A release goes to the job of one stream first, so that stream shares it with none."""
    assert parsed().canary is None
    named = TEXT.replace('job = "own"', 'job = "own"\ncanary = true')
    canary = parsed(named).canary
    assert canary is not None
    assert canary.name == "clicks"
    [fault] = faults(TEXT.replace("weight = 3", "weight = 3\ncanary = true"))
    assert fault == 'streams.orders.job: "shared" -> expected "own", because it is the canary'
    both = named.replace("weight = 3", 'weight = 3\njob = "own"\ncanary = true')
    assert [*faults(both)] == ["streams: canary = true in orders, clicks -> expected in one at most"]
