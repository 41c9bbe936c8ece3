"""Ranges of topics on Spark's executors: both engines take them as the lines of a file."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.settings.settings import load_settings
from compactor.wiring.job.app import App
from tests.support.extras import KAFKA
from tests.support.kafka_broker import KafkaBroker
from tests.support.settings_files import write_settings
from tests.support.workspace import Workspace

KAFKA.need()

from tests.support.kafka_topics import TopicFeed, ids_in, kafka_settings  # noqa: E402 - it needs the client

pytestmark = pytest.mark.full


def test_executors_read_values_of_several_lines(tmp_path: Path, broker: KafkaBroker, spark: Any, engine: str) -> None:
    """Each line is a record of its own, with the offset of the value that it is in."""
    feed = TopicFeed(broker.servers, f"jvm-lines-{engine}")
    feed.create(1)
    feed.send(0, b'{"id": "a"}\n{"id": "b"}\r\n', None, b'{"id": "c"}\nno json\n\n{"id": "d"}', b'{"id": "e"}')
    given = kafka_settings(broker.servers, feed.name)
    given["kafka"] |= {"record_columns": ["offset"], "values": "lines"}
    place = Workspace(tmp_path, write_settings(tmp_path, **given))
    place.json("plan", str(feed.topic))
    app = App(load_settings(place.config, {"COMPACTOR_CONVERT__ENGINE": engine}), spark=spark)
    app.service_on(app.engine(), ListedManifests(app.store, app.layout.manifests_folder)).run(once=True)
    rows = [row for path in (tmp_path / "o").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    found = sorted((row["id"], row["_kafka_offset"]) for row in rows)
    assert found == [("a", 0), ("b", 0), ("c", 2), ("d", 2), ("e", 3)]
    verified, code = place.json("verify", "--deep")
    assert (code, verified["lines"], verified["further_lines"], verified["rejected_lines"]) == (0, 8, 4, 1)
    traced, code = place.json("trace", f"{feed.topic}/0?offset=2")
    assert (code, traced["message"].endswith("is lines 4 to 7 of this range")) == (0, True)


def test_executors_read_ranges(tmp_path: Path, broker: KafkaBroker, spark: Any, engine: str) -> None:
    """Line feeds in values, tombstones and rejects included; values are those of the records."""
    feed = TopicFeed(broker.servers, f"jvm-{engine}")
    feed.create(3)
    keyed = (b'{"id": "keyed"}', None, b"no json", b'{ "id":\n"keyed-too", "_kafka_key": "false" }')
    feed.send(2, *keyed, key=b"k")
    feed.produce(0, 500)
    feed.transactions(1, [100, 100, 100])
    feed.send(0, None, b"no json", b'{"id":\r\n"several-lines"}', b'{"id": 1}\n{"id": 2}', b'{"id": "a\nb"}')
    given = kafka_settings(broker.servers, feed.name)
    given["kafka"] |= {"record_columns": ["key", "timestamp", "headers", "offset"]}
    place = Workspace(tmp_path, write_settings(tmp_path, **given))
    place.json("plan", str(feed.topic))
    app = App(load_settings(place.config, {"COMPACTOR_CONVERT__ENGINE": engine}), spark=spark)
    app.service_on(app.engine(), ListedManifests(app.store, app.layout.manifests_folder)).run(once=True)
    assert ids_in(tmp_path / "o") == dict.fromkeys([*feed.written, "several-lines", "keyed", "keyed-too"], 1)
    files = (tmp_path / "o").rglob("*.parquet")
    rows = [row for path in files for row in pq.read_table(path).to_pylist() if row["_kafka_key"] is not None]
    assert sorted((row["id"], row["_kafka_key"], row["_kafka_headers"], row["_kafka_offset"]) for row in rows) == [
        ("keyed", "k", "[]", 0),
        ("keyed-too", "k", "[]", 3),
    ]
    assert all(abs(datetime.now(UTC) - row["_kafka_timestamp"]) < timedelta(hours=1) for row in rows)
    verified, code = place.json("verify", "--deep")
    assert (code, verified["rejected_lines"], verified["inputs_gone"]) == (0, 4, 0)
