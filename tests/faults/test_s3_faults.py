"""Every kind of fault on every kind of call to S3: the store keeps its contract, and jobs end exact."""

import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.retries.standard import ExponentialBackoff

from compactor.adapters.aws import S3Store
from compactor.errors import AccessError, CompactorError, StoreUnavailable
from tests.engines import NATIVE, engines_on_spark, engines_without_spark
from tests.faults.fault_rules import FOR_AN_OPERATOR, LOST_ANSWERS, PASSING, FaultKind, Operation, Rule, applies
from tests.faults.proxy import FaultProxy
from tests.faults.s3_findings import Findings
from tests.faults.s3_lake import BUCKET, RESTARTS, SAMPLE_BYTES, S3Lake, as_toml, uploads
from tests.faults.s3_server import ROOT, S3Server, s3_server

SEED = 20251221
TIMEOUT_SECONDS = 0.8
PART_SECONDS = 2.0  # a part of some MiB takes longer than a call without a body
MIB = 1024 * 1024
PARTS = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB, max_concurrency=2)
BIG = random.Random(SEED).randbytes(11 * MIB)
NAMES = [f"{number:02d}" for number in range(7)]

OF_THE_STORE = [each for each in Operation if each is not Operation.LIST_UPLOADS]
UNTOLD = {Operation.ABORT_UPLOAD}  # why the upload is aborted is told, and what is left, the bucket's rule clears up
OF_THE_JOB = [
    Operation.LIST_OBJECTS,
    Operation.HEAD_OBJECT,
    Operation.GET_OBJECT,
    Operation.CREATE_OBJECT,
    Operation.PUT_OBJECT,
    Operation.DELETE_OBJECTS,
    Operation.COPY_OBJECT,
]


def shortened(cases: Sequence[tuple[Any, ...]], few: Sequence[tuple[Any, ...]]) -> list[Any]:
    """All cases for `make test-faults`, and a few of them for `make test`."""
    return [*(pytest.param(*case, marks=pytest.mark.faults) for case in cases), *few]


def sample(cases: Sequence[tuple[Any, ...]], count: int) -> list[tuple[Any, ...]]:
    """Some of them, the same ones each time."""
    return random.Random(SEED).sample(cases, count)


STORE_CASES = [(kind, operation) for kind in PASSING for operation in OF_THE_STORE if applies(kind, operation)]
STAYING_CASES = [case for case in STORE_CASES if case[0] is not FaultKind.STALE_LISTING and case[1] not in UNTOLD]
OPERATOR_CASES = [(kind, operation) for kind in sorted(FOR_AN_OPERATOR) for operation in OF_THE_STORE]
JOB_CASES = [(kind, operation) for kind in PASSING for operation in OF_THE_JOB if applies(kind, operation)]


@pytest.fixture(scope="module")
def findings(request: pytest.FixtureRequest) -> Iterator[Findings]:
    found = Findings()
    yield found
    plugins = request.config.pluginmanager
    terminal: Any = plugins.getplugin("terminalreporter")
    capture: Any = plugins.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        terminal.ensure_newline()
        terminal.section("faults on S3, by the level they were looked at on")
        terminal.write("\n".join([*found.table(), ""]))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "data") as started:
        started.make_bucket(BUCKET)
        yield started


@pytest.fixture(scope="module")
def proxy(server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(server.url, slow_body_seconds=0.1) as started:
        yield started


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, proxy: FaultProxy) -> None:
    """Nobody pauses before trying again: what counts is what happens, not when."""
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0.0)
    monkeypatch.setattr("compactor.service.pause_seconds", lambda *_, **__: 0.01)
    monkeypatch.setattr("compactor.adapters.aws.s3._UPLOAD", PARTS)
    monkeypatch.setattr("compactor.adapters.aws.s3._COPY", PARTS)
    monkeypatch.setattr("compactor.adapters.aws.multipart._PART_BYTES", 5 * MIB)
    monkeypatch.setattr("compactor.native_engine.SAMPLE_BYTES", SAMPLE_BYTES)
    proxy.use()
    proxy.restart_count()


@pytest.fixture(params=engines_without_spark())
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lakes(server: S3Server, engine: str) -> Callable[[], S3Lake]:
    """Makes lakes that nobody else uses."""
    return lambda: S3Lake(server, f"s3://{BUCKET}/{uuid.uuid4().hex}", engine)


# --- The store


@dataclass
class Scene:
    """A store that goes through the proxy, one that does not, and a folder of their own."""

    spoiled: S3Store
    direct: S3Store
    root: str
    path: Path

    def bytes_at(self, name: str) -> bytes | None:
        """What is there, seen without faults."""
        uri = self.root + name
        return self.direct.read(uri) if self.direct.stat(uri) else None


def _stat(scene: Scene) -> None:
    info = scene.spoiled.stat(scene.root + "here")
    assert info is not None
    assert info.size_bytes == 4


def _stat_missing(scene: Scene) -> None:
    assert scene.spoiled.stat(scene.root + "never-was") is None


def _read(scene: Scene) -> None:
    assert scene.spoiled.read(scene.root + "here") == b"here"
    assert scene.spoiled.read_range(scene.root + "here", 1, 2) == b"er"


def _list(scene: Scene) -> None:
    listed = scene.spoiled.list(scene.root + "names/")
    assert [info.uri.rpartition("/")[2] for info in listed] == NAMES


def _put(scene: Scene) -> None:
    scene.spoiled.put(scene.root + "here", b"new")
    assert scene.bytes_at("here") == b"new"


def _create(scene: Scene) -> None:
    assert scene.spoiled.create(scene.root + "created", b"mine")
    assert scene.bytes_at("created") == b"mine"


def _create_taken(scene: Scene) -> None:
    assert not scene.spoiled.create(scene.root + "here", b"mine")


def _copy(scene: Scene) -> None:
    scene.spoiled.copy(scene.root + "here", scene.root + "copied")
    assert scene.bytes_at("copied") == b"here"


def _copy_big(scene: Scene) -> None:
    scene.spoiled.copy(scene.root + "big", scene.root + "copied")
    assert scene.bytes_at("copied") == BIG


def _upload_big(scene: Scene) -> None:
    scene.spoiled.upload(scene.root + "uploaded", scene.path)
    assert scene.bytes_at("uploaded") == BIG


def _write(scene: Scene) -> None:
    with scene.spoiled.writer(scene.root + "here") as writer:
        writer.write(b"new")
    assert scene.bytes_at("here") == b"new"


def _write_big(scene: Scene) -> None:
    with scene.spoiled.writer(scene.root + "written") as writer:
        for start in range(0, len(BIG), MIB):
            writer.write(BIG[start : start + MIB])
    assert scene.bytes_at("written") == BIG


def _abandon(scene: Scene) -> None:
    class Abandoned(Exception): ...

    with suppress(Abandoned), scene.spoiled.writer(scene.root + "abandoned") as writer:
        writer.write(BIG)
        raise Abandoned
    assert not uploads(scene.direct, scene.root)
    assert scene.bytes_at("abandoned") is None


def _delete(scene: Scene) -> None:
    scene.spoiled.delete([scene.root + "here", scene.root + "never-was"])
    assert scene.bytes_at("here") is None


def _delete_unspeakable(scene: Scene) -> None:
    scene.spoiled.delete([scene.root + "\x01"])


ACTIONS: dict[Operation, tuple[Callable[[Scene], None], ...]] = {
    Operation.HEAD_OBJECT: (_stat, _copy),
    Operation.GET_OBJECT: (_read, _create_taken),
    Operation.LIST_OBJECTS: (_list,),
    Operation.PUT_OBJECT: (_put, _write),
    Operation.CREATE_OBJECT: (_create, _create_taken),
    Operation.COPY_OBJECT: (_copy,),
    Operation.DELETE_OBJECT: (_delete_unspeakable,),
    Operation.DELETE_OBJECTS: (_delete,),
    Operation.BUCKET: (_stat_missing,),
    Operation.CREATE_UPLOAD: (_upload_big, _write_big, _copy_big),
    Operation.UPLOAD_PART: (_upload_big, _write_big),
    Operation.COPY_PART: (_copy_big,),
    Operation.COMPLETE_UPLOAD: (_upload_big, _write_big, _copy_big),
    Operation.ABORT_UPLOAD: (_abandon,),
}
"""What a store does that comes to a call, with what must have come of it."""

CONTENTS = {
    "here": {b"here", b"new", None},
    "created": {b"mine", None},
    "copied": {b"here", BIG, None},
    "uploaded": {BIG, None},
    "written": {BIG, None},
    "abandoned": {None},
}
"""All that may ever be seen in a place: whole objects, of somebody who meant it."""


@pytest.fixture
def scene(server: S3Server, proxy: FaultProxy, tmp_path: Path) -> Callable[[int], Scene]:
    """Makes scenes for a client that sends a request so many times at most."""
    path = tmp_path / "big"
    path.write_bytes(BIG)
    count = 0

    def make(attempts: int) -> Scene:
        nonlocal count
        count += 1
        root = f"s3://{BUCKET}/{tmp_path.name}-{count}/"
        client = server.client(proxy.url, attempts=attempts, timeout_seconds=TIMEOUT_SECONDS)
        # So that a few names take more than one page.
        client.meta.events.register(
            "before-parameter-build.s3.ListObjectsV2", lambda params, **_: params.update(MaxKeys=3)
        )
        made = Scene(S3Store(client, sleep=lambda _: None), S3Store(server.client()), root, path)
        made.direct.put(root + "here", b"here")
        return made

    return make


def furnish(scene: Scene, action: Callable[[Scene], None]) -> None:
    """Put there what an action needs."""
    if action is _list:
        for name in NAMES:
            scene.direct.put(f"{scene.root}names/{name}", b"")
    if action is _copy_big:
        scene.direct.put(scene.root + "big", BIG)


TRIES_WHEN_BUSY = 3


@pytest.mark.parametrize(("kind", "operation"), shortened(STORE_CASES, sample(STORE_CASES, 12)))
def test_a_fault_that_passes_is_got_over(
    kind: FaultKind, operation: Operation, scene: Callable[[int], Scene], proxy: FaultProxy, findings: Findings
) -> None:
    """At the first, the second, ... call: the client's repeats hide it, and the method does what it says."""
    for action in ACTIONS[operation]:
        for number in range(1, 50):
            made = scene(3)
            furnish(made, action)
            proxy.use([Rule(kind, frozenset({operation}), calls=frozenset({number}))])
            proxy.restart_count()
            action(made)
            traffic = proxy.restart_count()
            if traffic.calls[operation] < number:
                break
            findings.add("store", kind, {operation}, injected=traffic.injected.total())


@pytest.mark.parametrize(("kind", "operation"), shortened(STAYING_CASES, sample(STAYING_CASES, 8)))
def test_a_fault_that_stays_is_told(
    kind: FaultKind, operation: Operation, scene: Callable[[int], Scene], proxy: FaultProxy, findings: Findings
) -> None:
    """From some call on: the method does what it says or raises, and never leaves or returns half of anything."""
    for action in ACTIONS[operation]:
        for attempts in (1, 3):
            injected, tries = 0, 0
            # On a machine that is busy with other things, an earlier call of the action may time out by itself.
            while not injected and tries < TRIES_WHEN_BUSY:
                tries += 1
                made = scene(attempts)
                furnish(made, action)
                proxy.use([Rule(kind, frozenset({operation}), probability=1.0)])
                proxy.restart_count()
                if kind is FaultKind.SLOW_BODY:
                    action(made)
                else:
                    with pytest.raises(StoreUnavailable, match=f"s3://{BUCKET}/"):
                        action(made)
                injected = proxy.restart_count().injected.total()
            assert injected
            findings.add("store", kind, {operation}, injected=injected)
            for name, allowed in CONTENTS.items():
                assert made.bytes_at(name) in allowed


@pytest.mark.parametrize(("kind", "operation"), shortened(OPERATOR_CASES, sample(OPERATOR_CASES, 3)))
def test_what_an_operator_must_mend_is_told_as_such(
    kind: FaultKind, operation: Operation, scene: Callable[[int], Scene], proxy: FaultProxy, findings: Findings
) -> None:
    """Permission denied, or a bucket that is gone, is never taken for passing trouble, nor for a missing object."""
    for action in ACTIONS[operation]:
        made = scene(3)
        furnish(made, action)
        proxy.use([Rule(kind, probability=1.0)])
        with pytest.raises(AccessError):
            action(made)
        injected = proxy.restart_count().injected
        findings.add("store", kind, {operation}, injected=injected.total())


def test_an_upload_that_somebody_cleared_away_is_passing_trouble(scene: Callable[[int], Scene]) -> None:
    """Where a clean-up of unfinished uploads met a living one, another upload will do: no operator is needed."""
    made = scene(1)

    def clear_away(params: dict[str, Any], **_: Any) -> None:
        made.direct._client.abort_multipart_upload(**{name: params[name] for name in ("Bucket", "Key", "UploadId")})

    events = made.spoiled._client.meta.events
    events.register_first("provide-client-params.s3.CompleteMultipartUpload", clear_away, unique_id="cleared")
    # The answer of S3 and of versitygw; moto knows of none, and says 500.
    with pytest.raises(StoreUnavailable, match=r"NoSuchUpload|answered with 500"):
        _upload_big(made)
    events.unregister("provide-client-params.s3.CompleteMultipartUpload", unique_id="cleared")
    _upload_big(made)


# --- The job, without Spark


def job_cases(numbers: Sequence[int]) -> list[tuple[Any, ...]]:
    """Every kind of fault on every kind of call, seen by a client that does not repeat, or whose repeat hides it."""
    return [
        (kind, operation, attempts, numbers)
        for kind, operation in JOB_CASES
        for attempts in ((1, 3) if kind in LOST_ANSWERS else (1,))
    ]


@pytest.mark.parametrize(
    ("kind", "operation", "attempts", "numbers"),
    shortened(job_cases(range(1, 100)), [*sample(job_cases([2]), 3), *sample(job_cases([4]), 3)]),
)
def test_a_job_gets_over_a_fault_at_any_call(
    kind: FaultKind,
    operation: Operation,
    attempts: int,
    numbers: Sequence[int],
    lakes: Callable[[], S3Lake],
    proxy: FaultProxy,
    findings: Findings,
) -> None:
    """One fault at the first, the second, ... call of its kind: nothing is lost or doubled or set aside for it."""
    for number in numbers:
        lake = lakes()
        lake.fill()
        proxy.use([Rule(kind, frozenset({operation}), calls=frozenset({number}))])
        proxy.restart_count()
        restarts = lake.run_job(proxy.url, attempts=attempts, timeout_seconds=TIMEOUT_SECONDS)
        traffic = proxy.restart_count()
        record_and_judge(lake, findings, "job", traffic.injected, [kind], restarts)
        if traffic.calls[operation] < number:
            break


# --- An output file that is sent in parts while it grows, which the native engine alone does

LARGE_KIB = 8 * 1024  # of input; of Parquet it is enough for two parts, of S3's least size each
IN_PARTS = [Operation.CREATE_UPLOAD, Operation.UPLOAD_PART, Operation.COMPLETE_UPLOAD, Operation.COPY_PART]
PART_CASES = [(kind, operation) for kind in PASSING for operation in IN_PARTS if applies(kind, operation)]


@pytest.fixture
def large_lake(lakes: Callable[[], S3Lake], engine: str) -> Callable[[], S3Lake]:
    """Makes lakes whose output file is sent in parts."""
    if engine != NATIVE:
        pytest.skip("the twin puts whole files")

    def make() -> S3Lake:
        lake = lakes()
        lake.fill_with_one_large(LARGE_KIB)
        return lake

    return make


@pytest.mark.parametrize(
    ("kind", "operation", "numbers"),
    shortened([(*case, [1, 2]) for case in PART_CASES], [(FaultKind.DONE_RESET, Operation.COMPLETE_UPLOAD, [1])]),
)
def test_a_job_gets_over_a_fault_amid_a_file_in_parts(
    kind: FaultKind,
    operation: Operation,
    numbers: Sequence[int],
    large_lake: Callable[[], S3Lake],
    proxy: FaultProxy,
    findings: Findings,
) -> None:
    """One fault at any call of an upload, for a client that does not repeat: the file is whole, or there is none."""
    for number in numbers:
        lake = large_lake()
        proxy.use([Rule(kind, frozenset({operation}), calls=frozenset({number}))])
        proxy.restart_count()
        restarts = lake.run_job(proxy.url, attempts=1, timeout_seconds=PART_SECONDS)
        traffic = proxy.restart_count()
        record_and_judge(lake, findings, "parts", traffic.injected, [kind], restarts)
        if traffic.calls[operation] < number:
            break


@pytest.mark.faults
def test_an_upload_that_cannot_even_be_aborted_does_no_harm(
    large_lake: Callable[[], S3Lake], proxy: FaultProxy, findings: Findings
) -> None:
    """A part fails, and so does the request to forget the others: another attempt makes the file."""
    lake = large_lake()
    abort = frozenset({Operation.ABORT_UPLOAD})
    rules = [Rule(FaultKind.RESET, frozenset({Operation.UPLOAD_PART}), calls=frozenset({2}))]
    proxy.use([*rules, Rule(FaultKind.RESET, abort, probability=1.0)])
    proxy.restart_count()
    restarts = lake.run_job(proxy.url, attempts=1, timeout_seconds=PART_SECONDS)
    injected = proxy.restart_count().injected
    assert injected[FaultKind.RESET, Operation.ABORT_UPLOAD]
    record_and_judge(lake, findings, "parts", injected, [FaultKind.RESET], restarts)


@pytest.mark.faults
def test_a_job_that_is_killed_amid_an_upload(
    large_lake: Callable[[], S3Lake], proxy: FaultProxy, findings: Findings, tmp_path: Path
) -> None:
    """`kill -9` with some parts sent: they are no object, and the next run is exact."""
    lake = large_lake()
    lake.deliver("larger", [lake.put_file("larger", good=24_000, more=lambda: f',"v":"{os.urandom(400).hex()}"')])
    config = tmp_path / "compactor.toml"
    config.write_text(as_toml(lake.settings(proxy.url)))
    proxy.use([Rule(FaultKind.SILENCE, frozenset({Operation.UPLOAD_PART}), probability=1.0)])
    words = ["--engine", NATIVE, "--target-file-bytes", str(lake.target_file_bytes)]
    command = [sys.executable, "-m", "tests.faults.plain_job", str(config), *words]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **lake.server.environment}) as job:
        while not lake.uploads():
            assert job.poll() is None
            time.sleep(0.02)
        job.kill()
    assert job.returncode == -signal.SIGKILL
    proxy.use()
    lake.run_job(proxy.url, attempts=3, timeout_seconds=PART_SECONDS)
    record_and_judge(lake, findings, "parts", proxy.restart_count().injected, [FaultKind.SILENCE], 1)


@pytest.mark.parametrize("seed", [*(pytest.param(seed, marks=pytest.mark.faults) for seed in range(20)), SEED])
def test_a_job_gets_through_a_storm(
    seed: int, lakes: Callable[[], S3Lake], proxy: FaultProxy, findings: Findings
) -> None:
    """All kinds of faults at random on a third of all calls, restart after restart, then calm: exact."""
    lake = lakes()
    lake.fill()
    proxy.use([Rule(kind, probability=0.04) for kind in PASSING], seed=seed)
    proxy.restart_count()
    restarts = 0
    for _ in range(3):
        with suppress(CompactorError):
            restarts += lake.run_job(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS)
            break
    proxy.use()
    lake.run_job(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS)
    record_and_judge(lake, findings, "storm", proxy.restart_count().injected, PASSING, restarts)


# A bucket is gone for all calls or for none: if only HEAD said so, it would say that objects are.
REFUSED = [
    *((FaultKind.ACCESS_DENIED, frozenset({operation, Operation.BUCKET})) for operation in OF_THE_JOB),
    (FaultKind.NO_SUCH_BUCKET, frozenset(Operation)),
]


@pytest.mark.parametrize(
    ("kind", "operations", "numbers"),
    shortened([(*case, range(1, 100)) for case in REFUSED], [(*REFUSED[-2], [1]), (*REFUSED[-1], [20])]),
)
def test_a_job_stops_where_an_operator_must_act(
    kind: FaultKind,
    operations: frozenset[Operation],
    numbers: Sequence[int],
    lakes: Callable[[], S3Lake],
    proxy: FaultProxy,
    findings: Findings,
) -> None:
    """Refused from some call on, it stops with a clear line and sets nothing aside; once mended, it is exact."""
    for number in numbers:
        lake = lakes()
        lake.fill()
        proxy.use([Rule(kind, operations, calls=frozenset({number}), burst=10_000)])
        proxy.restart_count()
        said = what_stopped(lambda lake=lake: lake.run_job(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS))
        assert said is None or re.fullmatch(rf".*s3://{BUCKET}/.*", said), "one line that names the place"
        assert lake.dead_letters() in ([], ["broken"])
        traffic = proxy.restart_count()
        proxy.use()
        lake.run_job(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS)
        record_and_judge(lake, findings, "job", traffic.injected, [kind])
        if not traffic.injected:
            break


def test_a_bucket_that_is_not_there_stops_a_job(server: S3Server, proxy: FaultProxy) -> None:
    """A job whose bucket does not exist says so, and does not try again."""
    with pytest.raises(AccessError, match="s3://no-such-lake/"):
        S3Lake(server, "s3://no-such-lake/x").run_job(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS)


# --- The job on Spark, whose S3A repeats what it may

WRITES = frozenset({each for each in Operation if each not in {Operation.GET_OBJECT, Operation.HEAD_OBJECT}})
ON_SPARK = {
    "refused": [Rule(kind, probability=0.02, burst=2) for kind in (FaultKind.SLOW_DOWN, FaultKind.INTERNAL_ERROR)],
    "cut off": [Rule(kind, probability=0.02) for kind in (FaultKind.RESET, FaultKind.TRUNCATED_BODY)]
    + [Rule(FaultKind.SLOW_BODY, probability=0.02), Rule(FaultKind.SILENCE, probability=0.005)],
    "answers lost": [Rule(kind, WRITES, probability=0.04) for kind in sorted(LOST_ANSWERS)],
    "lists and copies": [
        Rule(FaultKind.STALE_LISTING, probability=0.1),
        Rule(FaultKind.ERROR_IN_OK, probability=0.1),
        Rule(FaultKind.DONE_RESET, frozenset({Operation.COPY_OBJECT, Operation.DELETE_OBJECTS}), probability=0.2),
    ],
}


@dataclass
class SparkJob:
    """The real command on a lake, through the proxy."""

    lake: S3Lake
    config: Path

    def run(self) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "compactor", "--config", str(self.config), "run", "--once"]
        environment = {**os.environ, **self.lake.server.environment}
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False
        )


@pytest.fixture(params=engines_on_spark("native"))
def spark_job(server: S3Server, proxy: FaultProxy, tmp_path: Path, request: pytest.FixtureRequest) -> SparkJob:
    lake = S3Lake(server, f"s3://{BUCKET}/{uuid.uuid4().hex}", request.param)
    lake.fill()
    for number in range(3):
        files = [lake.put_file(f"more-{number}-{each}", good=40, bad=each) for each in range(3)]
        lake.deliver(f"more-{number}", files)
    config = tmp_path / "compactor.toml"
    config.write_text(as_toml(lake.settings(proxy.url)))
    return SparkJob(lake, config)


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ON_SPARK)
def test_the_job_on_spark_gets_over_it(name: str, spark_job: SparkJob, proxy: FaultProxy, findings: Findings) -> None:
    """`compactor run --once`, started again for as long as it ends with 1: exact, and nothing good is set aside."""
    proxy.use(ON_SPARK[name], seed=SEED)
    restarts = 0
    while (done := spark_job.run()).returncode != 3:
        assert done.returncode == 1, done.stderr
        restarts += 1
        assert restarts <= RESTARTS, done.stderr
    proxy.use()
    injected = proxy.restart_count().injected
    assert injected
    kinds = [rule.kind for rule in ON_SPARK[name]]
    record_and_judge(spark_job.lake, findings, "spark", injected, kinds, restarts)


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", sorted(FOR_AN_OPERATOR))
def test_the_job_on_spark_stops_where_an_operator_must_act(
    kind: FaultKind, spark_job: SparkJob, proxy: FaultProxy, findings: Findings
) -> None:
    """Refused once S3A is at work, it ends with 1 and one line, sets nothing aside, and is exact once mended."""
    proxy.use([Rule(kind, WRITES, pattern="/staging/", probability=1.0)])
    done = spark_job.run()
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("compactor: ")]
    assert len(said) == 1
    assert "Traceback" not in done.stderr
    assert spark_job.lake.dead_letters() in ([], ["broken"])
    injected = proxy.restart_count().injected
    proxy.use()
    assert spark_job.run().returncode == 3
    record_and_judge(spark_job.lake, findings, "spark", injected, [kind])


def what_stopped(work: Callable[[], object]) -> str | None:
    """The message of the error that an operator gets to see; None if the fault came too late to matter."""
    try:
        work()
    except AccessError as exc:
        return str(exc)
    return None


def record_and_judge(
    lake: S3Lake,
    findings: Findings,
    level: str,
    injected: Mapping[tuple[FaultKind, Operation], int],
    kinds: Iterable[FaultKind],
    restarts: int = 0,
) -> None:
    """Put on record what was lost and doubled, before anything is asserted."""
    lost, doubled = lake.lost_and_doubled()
    for kind in sorted(set(kinds)):
        of_kind = {operation: number for (found, operation), number in injected.items() if found is kind}
        counts = {"injected": sum(of_kind.values()), "restarts": restarts, "lost": lost, "doubled": doubled}
        findings.add(level, kind, of_kind, **counts)
    lake.assert_exact()
