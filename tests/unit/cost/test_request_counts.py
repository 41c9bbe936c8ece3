"""Counts of requests that estimates go by: they are what the code does, call by call."""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count

import pytest

from compactor.adapters.aws import messages
from compactor.adapters.listed_manifests import UNTOLD_SECONDS, ListedManifests
from compactor.adapters.local.machine import MachineProcesses
from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.rules.sharding import Shard
from compactor.cost import cost
from compactor.cost.cost import Requests
from compactor.engines.engine import EngineRules
from compactor.engines.spark.input_files import InspectTask, inspect_files
from compactor.job.shards import REFRESH_SECONDS, ShardShare
from compactor.ledger.heartbeat import Heartbeat, Runs
from compactor.ndjson.files.object_reading import RANGE_BYTES
from compactor.wiring import engines, planning, streaming
from compactor.wiring.app import App
from tests.support import extras
from tests.support.fakes import LIMITS, FaultyStore
from tests.support.harness import FLAWED, GOOD, Harness
from tests.support.memory_store import MemoryStore
from tests.support.s3_messages import notification

REQUESTS = {
    "stat": Requests(gets=1),
    "read": Requests(gets=1),
    "read_range": Requests(gets=1),
    "list": Requests(puts=1),
    "create": Requests(puts=1),
    "put": Requests(puts=1),
    "upload": Requests(puts=1),
    "writer": Requests(puts=1),
    "new_writer": Requests(puts=1),
    "copy": Requests(gets=1, puts=1),
    "delete": Requests(),
}
"""What a call of the store costs, about a small object; `tests/contract/test_s3_requests.py` holds it against S3."""


def requests_of(calls: Mapping[str, int]) -> Requests:
    total = Requests()
    for method, times in calls.items():
        total += REQUESTS[method] * times
    return total


def counted(store: FaultyStore) -> Requests:
    return requests_of({method: times for method, times in store.calls.items() if method != "any"})


@pytest.mark.parametrize(
    ("contents", "staged"), [([GOOD], 1), ([GOOD] * 8, 8), ([GOOD, FLAWED], 3), ([FLAWED] * 4, 5)], ids=str
)
def test_a_manifest(contents: list[bytes], staged: int) -> None:
    """From delivered to archived, a manifest takes the calls that the estimate counts, engine apart."""
    harness = Harness()
    store = FaultyStore(harness.store)
    runner = streaming.scheduler(harness.app(store=store), harness.engine())
    runner.run([harness.deliver("first", GOOD)])  # after which schema and sizes are known
    uri = harness.deliver("m1", *contents)
    store.calls.clear()
    runner.run([uri])
    commit = harness.commit("m1")
    assert len(commit.outputs) + len(commit.rejects) == staged
    assert counted(store) == cost.of_manifest(staged)
    harness.check_exact()


@extras.NATIVE.needed
@pytest.mark.parametrize(("contents", "rejects"), [([GOOD], 0), ([GOOD] * 8, 0), ([FLAWED] * 4, 1)], ids=str)
def test_a_manifest_in_place(contents: list[bytes], rejects: int) -> None:
    """It takes fewer calls than the same one that is copied, by as many as the estimates differ."""
    calls = []
    for is_in_place in (False, True):
        harness = Harness(table={}, in_place=is_in_place)
        store = FaultyStore(harness.store)
        runner = streaming.scheduler(harness.app(store=store), harness.engine())
        runner.run([harness.deliver("first", GOOD)])  # after which schema and sizes are known
        uri = harness.deliver("m1", *contents)
        store.calls.clear()
        runner.run([uri])
        calls.append(counted(store))
        outputs = len(harness.commit("m1").outputs)
        harness.check_exact()
    copied, in_place = calls
    looked_for = Requests(gets=outputs + rejects)  # a table may have what is in its final place
    commits = copied.gets - (cost.of_manifest(outputs + rejects) + looked_for).gets
    assert in_place.gets == cost.of_manifest_in_place(outputs, rejects).gets + commits
    assert copied.puts - in_place.puts == outputs - 1
    of_copies, of_places = (
        cost.of_manifest(outputs + rejects),
        cost.of_manifest_in_place(outputs, rejects),
    )
    assert of_copies.puts - of_places.puts == outputs - 1


@pytest.mark.parametrize("contents", [[GOOD], [GOOD, FLAWED], [GOOD] * 8], ids=len)
def test_a_manifest_by_the_native_engine(contents: list[bytes]) -> None:
    """Beside its manifest's, the engine takes the calls that read each file once and write each staged file."""
    extras.NATIVE.need()
    harness = Harness()
    store = FaultyStore(harness.store)
    app = harness.app(store=store)
    runner = streaming.scheduler(app, engines.native_engine(app, ThreadBinWorkers(store)))
    runner.run([harness.deliver("first", GOOD, FLAWED)])  # after which schema and sizes are known
    uri = harness.deliver("m1", *contents)
    store.calls.clear()
    runner.run([uri])
    commit = harness.commit("m1")
    of_engine = Requests()
    for content in contents:
        of_engine += cost.of_inspected_file(len(content))
    for output in commit.outputs:
        of_engine += cost.of_streamed_output(output.size_bytes)
    of_engine += REQUESTS["upload"] * len(commit.rejects)
    assert counted(store) == cost.of_manifest(len(commit.outputs) + len(commit.rejects)) + of_engine
    harness.check_exact()


@pytest.mark.parametrize("size", [3_670_016, RANGE_BYTES - 1, RANGE_BYTES, RANGE_BYTES + 1, 3 * RANGE_BYTES])
def test_an_inspected_file(size: int) -> None:
    """A file is read in the ranges that the estimate counts."""
    raw = MemoryStore()
    filler = b'{"id":"' + b"x" * 997 + b'"}\n'
    data = (filler * (size // len(filler) + 1))[:size]
    data = data[: data.rfind(b"\n") + 1].ljust(size)  # good lines, and one of spaces
    raw.put("s3://raw/file.ndjson", data)
    harness = Harness(store=raw)
    store = FaultyStore(raw)
    file = harness.named("s3://raw/file.ndjson")
    task = InspectTask(
        "m1", ((0, file),), "s3://own/staging/", EngineRules(LIMITS, "skip", (), 1 << 27, "snappy"), {}, 0
    )
    result = inspect_files(store, task)
    assert result.files[0].report.size_bytes == size
    assert result.files[0].readable_uri == file.uri
    assert counted(store) == cost.of_inspected_file(size)


def test_jobs_side_by_side() -> None:
    """Each of them lists and reads the heartbeats of all, once in a while."""
    harness = Harness()
    names = [f"{number}/3" for number in (1, 2, 3)]
    for name in names:
        Heartbeat(
            harness.store, harness.layout, harness.clock, name[0], MachineProcesses().this(), shard=name
        ).__enter__()
    store = FaultyStore(harness.store)
    runs = Runs(store, harness.layout, harness.clock, MachineProcesses())
    ShardShare(shard=Shard(1, 3), run_id="1", runs=runs).has_joined()
    calls = Counter(store.calls)
    del calls["any"]
    assert requests_of(calls) * (3600 / REFRESH_SECONDS) * 3 == cost.of_shards(3)
    assert cost.of_shards(1) == Requests()


def test_a_listing() -> None:
    """A job without Spark looks for waiting manifests by one listing."""
    harness = Harness()
    store = FaultyStore(harness.store)
    source = ListedManifests(store, harness.layout.manifests_folder)
    source.start(lambda _: None, once=True)
    assert source.wait(60)
    assert counted(store) == cost.OF_LISTING


def test_builder_and_sealer() -> None:
    """A call without a manifest, a pending part in each minute, a manifest of the builder, and one of the sealer."""
    harness = Harness(root="s3://own", builder={"target_manifest_bytes": 5 * len(GOOD), "max_wait_seconds": 120})
    store, number = FaultyStore(harness.store), count()

    def taken(call: Callable[[App], object]) -> Requests:
        app = harness.app(store=store)
        app.history.ratio()  # which is read now and then
        store.calls.clear()
        call(app)
        return counted(store)

    def build(files: int) -> Requests:
        messages = {}
        for key in (f"raw/{next(number)}.ndjson" for _ in range(files)):
            harness.store.put(f"s3://own/{key}", GOOD)
            info = harness.store.stat(f"s3://own/{key}")
            assert info is not None
            messages[key] = notification("own", key, info.size_bytes, info.etag)
        return taken(lambda app: planning.builder(app).build(messages))

    def seal() -> Requests:
        return taken(lambda app: planning.sealer(app).seal())

    settings = Requests(gets=1)  # each call of a function reads them first
    assert [build(1) + settings, build(1) + settings] == [cost._OF_A_BUILD] * 2
    assert build(6) == Requests(puts=4)  # a manifest, and a part of what is left
    waiting = 3
    assert seal() + settings == cost._OF_A_SEAL + Requests(gets=waiting)
    harness.clock.advance(130)
    assert seal() + settings == cost._OF_A_SEAL + cost._OF_A_MANIFEST + Requests(gets=waiting * cost._GETS_OF_A_PART)
    assert seal() == Requests(puts=1)


def test_the_queue_of_manifests() -> None:
    """Estimates count its polls and the listings beside it as they are."""
    assert (cost._POLL_SECONDS, cost._UNTOLD_SECONDS) == (messages._POLL_SECONDS, UNTOLD_SECONDS)


def test_a_heartbeat() -> None:
    """A heartbeat takes one call to write, one to learn the store's time, and one to read whether to stop."""
    harness = Harness()
    store = FaultyStore(harness.store)
    with Heartbeat(store, harness.layout, harness.clock, "r1", MachineProcesses().this()):
        calls = Counter(store.calls)
    del calls["any"]
    assert requests_of(calls) == cost.OF_HEARTBEAT
