"""Announced files go to the stream of their longest prefix, each to exactly one, also when the prefixes change."""

from contextlib import nullcontext

import pytest

from compactor.core.crash_points import PlanCrashPoint, ignore_crash_point
from compactor.core.documents.manifest import Manifest
from compactor.core.errors import AccessError
from compactor.core.inputs.source_places import Routes
from compactor.core.ports import ObjectInfo
from compactor.wiring import finding, planning
from tests.support.harness import DiedError, Harness, dying_at
from tests.support.logged import events_logged
from tests.support.s3_messages import notification
from tests.support.streams import MIB, StreamsInMemory, stream_settings

NESTED = (
    "orders",
    {"name": "returns", "input": {"allowed_prefixes": ["s3://lake/raw/orders/returns", "s3://lake/raw/back"]}},
)


def put(key: str, size: int = MIB, etag: str = "e1") -> str:
    return notification("lake", f"raw/{key}", size, etag)


def test_the_longest_prefix_decides() -> None:
    """A file goes to the stream with the longest prefix above it; a name that only begins alike is not below it."""
    routes = Routes({"orders": ["s3://lake/raw/orders"], "returns": ["s3://lake/raw/orders/returns/"], "all": ["/in"]})
    assert routes.stream_of("s3://lake/raw/orders/a.ndjson") == "orders"
    assert routes.stream_of("s3a://lake/raw/orders/returns/a.ndjson") == "returns"
    assert routes.stream_of("s3://lake/raw/orders/returns-old/a.ndjson") == "orders"
    assert routes.stream_of("s3://lake/raw/orders-2/a.ndjson") is None
    assert routes.stream_of("s3://lake/raw/orders/../x/a.ndjson") is None
    assert routes.stream_of("file:///in//x/a.ndjson") == "all"


def test_each_stream_gets_its_files() -> None:
    """One message may announce files of several streams; what belongs to none is counted and logged, and no failure."""
    streams = StreamsInMemory(stream_settings(*NESTED))
    bodies = [put(key) for key in ("orders/a", "orders/returns/b", "back/c", "new/d", "new/")]
    with events_logged("files.unrouted") as told:
        report = streams.build(*bodies, "{}")
    for name in ("orders", "returns"):
        streams.seal(name, after_seconds=100)
    assert set(streams.places("orders")) == {"s3://lake/raw/orders/a#e1"}
    assert set(streams.places("returns")) == {"s3://lake/raw/orders/returns/b#e1", "s3://lake/raw/back/c#e1"}
    assert (report.unrouted, dict(report.skipped), set(report.failed)) == (1, {"folder_marker": 1}, {"m5"})
    assert [each["first"] for each in told] == ["s3://lake/raw/new/d"]


def test_trouble_of_one_stream_fails_its_messages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that may not read its state has its messages delivered again; those of others are acknowledged."""
    streams = StreamsInMemory(stream_settings("orders", "clicks"))
    read, forbidden = streams.store.list, "s3://lake/state/streams/orders/"

    def denied(prefix: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        if prefix.startswith(forbidden):
            raise AccessError(f"{prefix}: denied")
        return list(read(prefix, start_after=start_after))

    monkeypatch.setattr(streams.store, "list", denied)
    report = streams.build(put("orders/a"), put("clicks/b"))
    assert set(report.failed) == {"m0"}
    assert len(report.plans["clicks"].parts) == 1


@pytest.mark.parametrize("writes", [True, False], ids=["written", "died"])
def test_a_prefix_that_moves_doubles_and_loses_nothing(*, writes: bool) -> None:
    """A file that one stream claimed is not taken by another, unless the claimant died before it wrote."""
    before = StreamsInMemory(stream_settings("orders"))
    with nullcontext() if writes else pytest.raises(DiedError):
        dies = ignore_crash_point if writes else dying_at(PlanCrashPoint.CLAIMED)
        planning.builder(before.components(on_crash_point=dies)).build({"m": put("orders/returns/a")})
    after = StreamsInMemory(stream_settings(*NESTED), before.store)
    after.clock, after.claims = before.clock, before.claims
    first = after.build(put("orders/returns/a"))
    assert bool(first.failed) is not writes  # the claim holds until its lease ends
    after.clock.advance(400)
    assert not after.build(put("orders/returns/a")).failed
    for name in ("orders", "returns"):
        after.seal(name, after_seconds=200)
    found = {name: sum(after.places(name).values()) for name in ("orders", "returns")}
    assert found == ({"orders": 1, "returns": 0} if writes else {"orders": 0, "returns": 1})


def test_what_was_claimed_before_there_were_streams_stays_claimed() -> None:
    """A file in a manifest of the settings without streams is in no manifest of a stream."""
    single = Harness(root="s3://lake")
    body = put("orders/a")
    from tests.support.building import build  # noqa: PLC0415

    build(single, body)
    streams = StreamsInMemory(stream_settings("orders"), single.store)
    streams.clock, streams.claims = single.clock, single.claims
    single.clock.advance(400)
    report = streams.build(body)
    assert not report.failed
    assert report.plans["orders"].planned_before == 1


def test_a_plan_leaves_the_files_of_other_streams() -> None:
    """A plan of the longer prefix's parent names the files of its own stream only."""
    streams = StreamsInMemory(stream_settings(*NESTED))
    for key in ("orders/a", "orders/returns/b"):
        streams.store.put(f"s3://lake/raw/{key}", b"{}\n")
    from compactor.wiring.app import App  # noqa: PLC0415

    app = App(streams.settings.of_stream("orders"), clock=streams.clock, store=streams.store, claims=streams.claims)
    plan = finding.plan(app, "s3://lake/raw/orders")
    [written] = [streams.store.read(app.layout.manifest(each.manifest_id)) for each in plan.manifests]
    assert [file.uri for file in Manifest.model_validate_json(written).files] == ["s3://lake/raw/orders/a"]
    assert plan.skipped == {"other_stream": 1}
