"""Sources of Kinesis streams in settings."""

from pathlib import Path
from typing import Any

import pytest

from compactor.adapters.kinesis_sources import stray_rules
from compactor.core.errors import SettingsError
from compactor.core.kinesis.places import KinesisStream
from compactor.settings.settings import Settings, load_settings
from tests.support.settings_files import write_settings


def loaded(root: Path, source: dict[str, Any], prefix: str = "kinesis://main/orders") -> Settings:
    return load_settings(
        write_settings(root, input={"allowed_prefixes": [prefix]}, kinesis={"sources": {"main": source}}), {}
    )


def test_streams_that_the_job_plans(tmp_path: Path) -> None:
    """They have to be of a source and within the input, and a job has to run."""

    def planning(*streams: str, mode: str = "always") -> Settings:
        kinesis = {"sources": {"main": {}}, "streams": list(streams)}
        given: dict[str, Any] = {"input": {"allowed_prefixes": ["kinesis://main/orders"]}, "control": {"mode": mode}}
        return load_settings(write_settings(tmp_path, kinesis=kinesis, **given), {})

    assert planning("kinesis://main/orders/").kinesis_streams == (KinesisStream("main", "orders"),)
    assert planning().kinesis_streams == ()
    for streams, expected in (
        (["kinesis://main/others"], "expected a stream within input.allowed_prefixes: kinesis://main/orders"),
        (["kinesis://away/orders"], "expected a stream of a source of kinesis.sources"),
        (["kinesis://main"], "expected kinesis://source/stream"),
        (["kinesis://main/orders"] * 2, "expected each stream once"),
    ):
        with pytest.raises(SettingsError, match=expected):
            planning(*streams)
    with pytest.raises(SettingsError, match=r"only a job that runs plans kinesis\.streams"):
        planning("kinesis://main/orders", mode="on_work")


def test_sources(tmp_path: Path) -> None:
    """Every key may be left out."""
    found = loaded(tmp_path, {"region": "eu-west-1", "consumer": "compactor", "strays": "drop"})
    assert found.input.allowed_prefixes == ("kinesis://main/orders",)
    assert stray_rules(found.kinesis.sources) == {"main": "drop"}
    assert stray_rules(loaded(tmp_path, {}, "kinesis://main/").kinesis.sources) == {"main": "keep"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"region": "Frankfurt"}, "region as a region such as eu-central-1"),
        ({"strays": "both"}, "strays as keep or drop"),
        ({"consumer": "a b"}, "consumer as the name of a registered consumer"),
        ({"endpoint_url": "localhost"}, "endpoint_url as http"),
        ({"landing": "s3://b"}, "some of region, consumer, strays, endpoint_url, and not landing"),
    ],
)
def test_faults(tmp_path: Path, source: dict[str, Any], expected: str) -> None:
    """Each is told with what was expected."""
    with pytest.raises(SettingsError, match=expected):
        loaded(tmp_path, source)


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [("kinesis://other/orders", r"a source of kinesis\.sources"), ("kinesis://main/a/b", "kinesis://source/stream")],
)
def test_prefixes(tmp_path: Path, prefix: str, expected: str) -> None:
    """Their source has to be named, and they name a stream or all of a source."""
    with pytest.raises(SettingsError, match=expected):
        loaded(tmp_path, {}, prefix)
