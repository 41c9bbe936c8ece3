"""The job on Spark's file stream: the manifests it finds, and the outcome of each."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.changes import Commit, DeadLetter
from compactor.job.results import Ending
from compactor.wiring import streaming
from tests.support.extras import NATIVE

TIMEOUT_SECONDS = 120
QUICK = "native" if NATIVE.found() else "spark"
"""The quicker engine, which finds no manifests itself."""

EACH_ENGINE = [
    pytest.param(each, marks=() if each == QUICK else pytest.mark.full) for each in dict.fromkeys([QUICK, "spark"])
]
NAMES = ["plain.json", "a b[1].json", "a1.json", "a%20b+#.json", "ä𝒳.json", "a:b.json", "{a}*?.json", "b\\c"]


def outcomes(workspace):
    """Every outcome on record, by manifest id."""
    return {key.id: workspace.app.ledger.outcome(key) for key in workspace.app.ledger.manifests()}


def left(workspace):
    return [info.uri for info in workspace.app.store.list(workspace.app.layout.manifests_folder)]


def rows(workspace):
    return sorted(
        record["n"]
        for found in outcomes(workspace).values()
        if isinstance(found, Commit)
        for record in workspace.compacted(found.manifest_id).records
    )


@pytest.mark.parametrize("engine", [QUICK])
@pytest.mark.parametrize(
    ("kind", "names"),
    [("local", NAMES), pytest.param("s3", NAMES, marks=pytest.mark.full)],
    ids=["local", "s3"],
)
def test_manifests_of_any_name_are_found_once(new_workspace, new_s3_workspace, kind, names):
    """Odd names are worked on like others, hidden and empty ones are left alone, and a second run finds nothing."""
    workspace = (new_workspace if kind == "local" else new_s3_workspace)()
    for number, name in enumerate(names):
        workspace.deliver(f"m{number}", [workspace.write(str(number), b'{"n":"%d"}' % number)], name)
    if kind == "local":  # older than all others, which were seen before
        os.utime(workspace.app.layout.manifests_folder + names[0], (1_765_000_000, 1_765_000_000))
    put, folder = workspace.app.store.put, workspace.app.layout.manifests_folder
    put(folder + "_hidden.json", b"{}")
    put(folder + ".hidden.json", b"{}")
    put(folder + "empty.json", b"")
    report = streaming.service(workspace.app).run(once=True)
    assert (report.committed, report.dead_lettered, report.failures) == (len(names), 3, {})
    assert rows(workspace) == sorted(str(number) for number in range(len(names)))
    reasons = {found.source_uri.removeprefix(folder): found.reason for found in outcomes(workspace).values()
               if isinstance(found, DeadLetter)}  # fmt: skip
    assert reasons == {"_hidden.json": "hidden_name", ".hidden.json": "hidden_name", "empty.json": "empty"}
    assert left(workspace) == [workspace.app.layout.keep_marker]
    workspace.check()
    again = streaming.service(workspace.app).run(once=True)
    assert (again.committed, again.dead_lettered) == (0, 0)


def version_1(**changes):
    document = {"version": 1, "manifest_id": "x", "date": "2025-12-21", "created_at": "2025-12-21T10:15:00Z"}
    return document | {"files": [{"uri": "/raw/a"}]} | changes


BAD_MANIFESTS = {
    "not_json": b"{nonsense",
    "not_json_binary": bytes(range(256)),
    "not_json_brackets": b"[" * 100_000,
    "not_an_object": b"[]",
    "empty_blanks": b" \n\t ",
    "unknown_form": b'{"a":1}',
    "unknown_version": version_1(version=9),
    "bad_id": version_1(manifest_id="../../x"),
    "bad_date": version_1(date="2025-02-30"),
    "no_files": version_1(files=[]),
    "no_files_null": version_1(files=None),
    "bad_file": version_1(files=[{"uri": 1}]),
    "bad_file_size": version_1(files=[{"uri": "/raw/a", "size_bytes": "big"}]),
    "bad_uri": version_1(files=[{"uri": "http://x/y"}]),
    "outside_allowed_prefixes": version_1(files=[{"uri": "/etc/passwd"}]),
    "outside_allowed_prefixes_dots": version_1(files=[{"uri": "RAW../state/ledger"}]),
    "duplicate_uri": version_1(files=[{"uri": "RAWa"}, {"uri": "file://RAWa"}]),
}


@pytest.mark.parametrize("engine", EACH_ENGINE)
def test_bad_manifests_become_dead_letters_beside_good_ones(new_workspace):
    """Each bad manifest is a dead letter with its own reason and its bytes; the good ones among them are committed."""
    workspace = new_workspace()
    originals = {}
    for name, bad in BAD_MANIFESTS.items():
        data = bad if isinstance(bad, bytes) else json.dumps(bad).replace("RAW", workspace.raw).encode()
        originals[name] = data
        workspace.app.store.put(f"{workspace.app.layout.manifests_folder}{name}.json", data)
    good = [workspace.deliver(f"good-{number}", [workspace.write(f"g{number}", b'{"n":"g"}')]) for number in range(2)]
    workspace.app.store.copy(good[0], good[0].replace("good-0", "the-same-again"))
    report = streaming.service(workspace.app).run(once=True)
    assert (report.committed, report.dead_lettered, report.failures) == (2, len(BAD_MANIFESTS), {})
    dead = {found.manifest_id: found for found in outcomes(workspace).values() if isinstance(found, DeadLetter)}
    assert set(dead) == set(BAD_MANIFESTS)
    for name, found in dead.items():
        assert name.startswith(found.reason)
        assert workspace.app.store.read(workspace.app.layout.failed_manifest(name)) == originals[name]
    assert rows(workspace) == ["g", "g"]
    assert left(workspace) == [workspace.app.layout.keep_marker]
    workspace.check()


@pytest.mark.parametrize("engine", EACH_ENGINE)
def test_a_running_job_takes_what_comes_and_stops_when_told(new_workspace):
    """It starts on an empty prefix, works on what arrives later, finishes what is in hand when stopped, and returns."""
    converted, stopped = Event(), Event()

    def on_crash_point(step, manifest_id):
        if step is CrashPoint.CONVERTED and manifest_id == "second":
            converted.set()
            assert stopped.wait(TIMEOUT_SECONDS)

    workspace = new_workspace(on_crash_point=on_crash_point)
    arrived = Event()
    workspace.app.on_result = lambda result: arrived.set() if result.ending is Ending.COMMITTED else None
    service = streaming.service(workspace.app)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(service.run, once=False)
        try:
            workspace.deliver("first", [workspace.write("a", b'{"n":"1"}')])
            assert arrived.wait(TIMEOUT_SECONDS)
            workspace.deliver("second", [workspace.write("b", b'{"n":"2"}')])
            assert converted.wait(TIMEOUT_SECONDS)
        finally:
            service.stop()
            stopped.set()
        report = run.result(TIMEOUT_SECONDS)
    assert (report.committed, report.failures) == (2, {})
    assert rows(workspace) == ["1", "2"]
    assert left(workspace) == [workspace.app.layout.keep_marker]
    assert list(workspace.app.store.list(workspace.app.layout.checkpoints_folder)) == []
    workspace.check()
