"""How files of rows get their final names: in place only where it can be, and where it saves a copy."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from compactor.adapters.local.native.kernel import is_installed
from compactor.core.errors import SettingsError
from compactor.settings.settings import parse_settings
from compactor.wiring.job.app import App

TABLE = {"catalog": "sql", "uri": "sqlite:////w/c.db", "warehouse": "/w/t", "name": "lake.events"}


def document(output: Mapping[str, object], root: str = "/w", engine: str = "auto") -> dict[str, dict[str, object]]:
    return {
        "paths": {place: f"{root}/{place}" for place in ("manifests", "output", "state")},
        "input": {"allowed_prefixes": [f"{root}/raw"]},
        "builder": {"claims": "@journal"},
        "convert": {"engine": engine},
        "output": dict(output),
        "table": dict(TABLE),
    }


def in_place(**given: str) -> bool:
    output = {"table": given.get("table", "iceberg"), "publish": given.get("publish", "auto")}
    settings = parse_settings(document(output, given.get("root", "/w"), given.get("engine", "auto")))
    return App(settings).is_in_place


@pytest.mark.skipif(not is_installed(), reason="needs the native engine")
def test_auto_saves_the_copy_of_a_table_on_s3() -> None:
    """On a disk a copy is a link, and costs nothing."""
    assert in_place(root="s3://lake")
    assert not in_place()
    assert not in_place(root="s3://lake", publish="copy")
    assert not in_place(root="s3://lake", engine="spark")
    assert not in_place(root="s3://lake", table="none")
    assert in_place(publish="in_place")


def test_why_not_in_place() -> None:
    """Each reason is said, with the key and what was expected."""
    with pytest.raises(SettingsError) as raised:
        parse_settings(document({"publish": "in_place"}, engine="spark"))
    because = 'output.publish: "in_place" -> expected "copy" or "auto", because '
    assert [fault for fault in raised.value.faults if "publish" in fault] == [
        f'{because}output.table is "none": readers of the folders would see files before they are decided',
        f'{because}convert.engine is "spark", which writes through the committers of S3A',
    ]


def test_an_engine_that_is_not_installed() -> None:
    """Where "auto" is Spark's engine, nothing can be written in place: the job says so before it begins."""
    app = App(parse_settings(document({"table": "iceberg", "publish": "in_place"})))
    app.__dict__["engine_choice"] = replace(app.engine_choice, name="spark", reason="it is not installed")
    with pytest.raises(SettingsError, match="because the engine is spark"):
        _ = app.is_in_place
