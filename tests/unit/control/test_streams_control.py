"""The control plane of several streams: one check of the job that they share, one of each job of a single stream."""

from dataclasses import replace

import pytest

from compactor.core.errors import SettingsError
from compactor.wiring.control import control_plane
from tests.support.memory_glue import MemoryGlue
from tests.support.memory_store import MemoryMetrics
from tests.support.streams import StreamsInMemory, stream_settings

OWN = {"name": "clicks", "job": "own", "input": {"allowed_prefixes": ["s3://lake/raw/clicks"]}}


def test_each_job_has_its_backlog_and_each_stream_its_metrics() -> None:
    """What waits in the shared streams starts their job and no other; each stream's age is a metric of its own."""
    streams = StreamsInMemory(stream_settings("orders", "views", OWN, control={"mode": "on_work"}))
    streams.store.put("s3://lake/manifests/orders/m1.json", b"{}")
    streams.clock.advance(100)
    streams.store.put("s3://lake/manifests/views/m2.json", b"{}")
    jobs = {each.run_name: each for each in streams.settings.jobs}
    assert set(jobs) == {"compactor", "compactor-clicks"}
    glue = {name: MemoryGlue(streams.clock) for name in jobs}
    metrics = {name: MemoryMetrics() for name in ("all", "orders", "views", "clicks")}
    planes = {
        name: control_plane(
            each,
            job=glue[name],
            clock=streams.clock,
            store=streams.store,
            metrics=metrics[each.name or "all"],
        )
        for name, each in jobs.items()
    }
    shared = {name: metrics[name] for name in planes["compactor"].stream_metrics}
    planes["compactor"] = replace(planes["compactor"], stream_metrics=shared)
    checked = {name: each.check() for name, each in planes.items()}
    assert {name: len(each.started) for name, each in glue.items()} == {"compactor": 1, "compactor-clicks": 0}
    assert checked["compactor"].snapshot.backlog is not None
    assert checked["compactor"].snapshot.backlog.manifests == 2
    key = "OldestManifestAgeSeconds"
    ages = {name: [each[key] for each in found.emitted if key in each] for name, found in metrics.items()}
    assert ages == {"all": [100.0], "orders": [100.0], "views": [0.0], "clicks": [0.0]}


def test_the_check_of_a_stream_without_a_job_of_its_own_is_refused() -> None:
    """There is no job that works on it alone."""
    with pytest.raises(SettingsError, match="works on other streams"):
        stream_settings("orders", OWN).of_stream("orders").require_job()
    stream_settings("orders", OWN).of_stream("clicks").require_job()
