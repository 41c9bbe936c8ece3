"""Promises of the doctor's parts: each place is really tried and left as it was, and one failure hides no other."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compactor.adapters.local.store import LocalStore
from compactor.adapters.local.this_machine import ThisMachine
from compactor.adapters.memory.store import ManualClock, MemoryStore
from compactor.cli.entry import compactor as command
from compactor.core.errors import AccessError, CompactorError, SettingsError, StoreUnavailable
from compactor.core.layout import is_delivery, is_seen_by_stream, probe
from compactor.ops.doctor.account_checks import clock_finding
from compactor.ops.doctor.checkup import Environment, places_checks_of
from compactor.ops.doctor.findings import Finding, fault, ok, settings_findings, warning
from compactor.ops.doctor.java import Java
from compactor.ops.doctor.machine_checks import disks, native, python, s3a, spark
from compactor.ops.doctor.ports import Disk, SparkFound
from compactor.ops.doctor.rights import ADD_ONLY, ALL, try_input, try_own_place
from compactor.ops.doctor.runner import Check, examine
from compactor.ops.verify.surplus import SurplusFinder
from compactor.settings.settings import load_settings, parse_settings
from compactor.wiring.app import App

GIB = 1024**3
PLACES = {"manifests": "s3://own/manifests", "output": "s3://lake/events", "state": "s3://own/state"}


class Refusing(MemoryStore):
    """A store that refuses some calls."""

    def __init__(self, **refused: CompactorError) -> None:
        super().__init__()
        self.refused = refused

    def _answer(self, call: str) -> None:
        if call in self.refused:
            raise self.refused[call]

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[Any]:
        self._answer("list")
        return super().list(prefix, start_after=start_after)

    def put(self, uri: str, data: bytes) -> None:
        self._answer("put")
        super().put(uri, data)

    def delete(self, uris: Iterable[str]) -> None:
        self._answer("delete")
        super().delete(uris)


class Overwriting(MemoryStore):
    """A server that takes no notice of If-None-Match."""

    def create(self, uri: str, data: bytes) -> bool:
        self.put(uri, data)
        return True


def tried(store: MemoryStore, rights: tuple[Any, ...] = ALL, suffix: str = "-1") -> Finding:
    return try_own_place(store, "state", "s3://own/state", "paths.state", rights, suffix)


def test_a_place_that_may_be_used() -> None:
    """All that is needed was tried, and nothing is left."""
    store = MemoryStore()
    assert tried(store) == ok("state", "s3://own/state: may list, read, write, create-only write, delete")
    assert not list(store.list("s3://own/"))


def test_each_right_is_refused_by_itself() -> None:
    """What is refused is said with what else was not tried; the rest is tried all the same."""
    denied = AccessError("s3://own/state/x: PutObject was answered with AccessDenied: no")
    found = tried(
        Refusing(put=denied, list=AccessError("s3://own/state/: ListObjectsV2 was answered with AccessDenied"))
    )
    assert found.state == "fault"
    assert found.found == (
        "s3://own/state: cannot list, write: ListObjectsV2 was answered with AccessDenied; "
        "PutObject was answered with AccessDenied: no (not tried: read, create-only write, delete)"
    )
    assert found.next_move.startswith(
        "allow s3:ListBucket on arn:aws:s3:::own and s3:PutObject on arn:aws:s3:::own/state/*"
    )


def test_what_may_not_be_deleted() -> None:
    """Where deleting is needed it is a fault that it is denied; output needs none, and does not fill up by it."""
    denied = AccessError("s3://own/state/: not deleted: AccessDenied: no")
    assert "cannot delete: not deleted: AccessDenied: no" in tried(Refusing(delete=denied)).found
    store = Refusing(delete=denied)
    for _ in range(3):
        found = tried(store, ADD_ONLY, "")
        assert found == ok(
            "state",
            "s3://own/state: may list, read, write; left behind, and in nobody's way: "
            "s3://own/state/_doctor/probe/put/_keep",
        )
    assert len(list(store.list("s3://own/"))) == 1


def test_a_server_that_excludes_nobody() -> None:
    """A store that lets a second writer through is at fault: the ledger rests on it."""
    found = tried(Overwriting())
    assert found.state == "fault"
    assert "does not heed If-None-Match, which the ledger rests on" in found.found
    assert "use a server that does" in found.next_move


def test_a_store_that_does_not_answer_is_asked_no_more() -> None:
    """A store that is not there is one failure, not one for each right."""
    with pytest.raises(StoreUnavailable):
        tried(Refusing(put=StoreUnavailable("timed out")))


def test_input() -> None:
    """Input is listed, and one byte of the first file read; nothing there is a warning; nothing is written."""
    store = MemoryStore()
    look = ("input", "s3://raw", "input.allowed_prefixes")
    assert try_input(store, *look) == warning(
        "input", "s3://raw: nothing is there", "if there should be files, put input.allowed_prefixes right"
    )
    store.put("s3://raw/folder/", b"")
    assert try_input(store, *look).state == "warning"
    store.put("s3://raw/folder/a.ndjson", b"{}")
    assert try_input(store, *look) == ok("input", "s3://raw: may list, read")
    assert len(list(store.list("s3://raw/"))) == 2


def test_nobody_takes_a_probe_for_anything() -> None:
    """Probes that stayed behind are no manifests, no output and no state to anybody."""
    settings = parse_settings({"paths": PLACES, "input": {"allowed_prefixes": ["s3://raw"]}})
    app = App(settings, store=MemoryStore(), clock=ManualClock())
    for place in PLACES.values():
        for name in ("put", "create-1"):
            uri = probe(place, name)
            assert not is_delivery(uri)
            assert not is_seen_by_stream(uri.removeprefix(f"{place}/"), 6)
            app.store.put(uri, b"doctor")
    status = app.status_reader.read()
    assert (status.backlog.manifests, status.backlog.begun_manifests, status.dead_letters.manifests) == (0, 0, 0)
    assert not list(SurplusFinder(app.store, app.layout, app.ledger).everywhere())


def config_of(folder: Path, **changes: str) -> Path:
    """Settings on plain folders."""
    places = {name: f"{folder}/own/{name}" for name in PLACES} | changes
    path = folder / "settings.toml"
    lines = [f'{name} = "{place}"' for name, place in places.items()]
    path.write_text("\n".join(["[paths]", *lines, "[input]", f'allowed_prefixes = ["{folder}/raw"]']))
    return path


def call(*arguments: str) -> Result:
    env = {"COMPACTOR_CONFIG": None, "PATH": "/usr/bin:/bin"}
    return CliRunner().invoke(command, [*arguments, "doctor", "--elsewhere"], env=env)


def test_folders_stay_as_they_were(tmp_path: Path) -> None:
    """Folders that were not there are not there afterwards; an empty one that was is still the same one."""
    output = tmp_path / "own" / "output"
    output.mkdir(parents=True)
    before = output.stat().st_ino
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.ndjson").write_text("{}")
    config = config_of(tmp_path)
    result = call("--config", str(config))
    assert result.exit_code == 0, result.stdout
    assert output.stat().st_ino == before
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["a.ndjson", "output", "own", "raw", "settings.toml"]
    assert result.stdout.splitlines() == [
        f"ok       settings      {config}",
        f"ok       input         {tmp_path}/raw: may list, read",
        f"ok       manifests     {tmp_path}/own/manifests: may list, read, write, create-only write, delete",
        f"ok       output        {tmp_path}/own/output: may list, read, write",
        f"ok       state         {tmp_path}/own/state: may list, read, write, create-only write, delete",
        "skipped  aws           these settings name nothing there",
        "No fault.",
    ]


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    """A local place that cannot be had is named with its key, and how to mend it."""
    (tmp_path / "raw").write_text("a file")
    (tmp_path / "taken").write_text("a file")
    result = call("--config", str(config_of(tmp_path, state=f"{tmp_path}/taken/state")))
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    place = next(index for index, line in enumerate(lines) if line.startswith("FAULT    state"))
    assert f"{tmp_path}/taken/state: cannot " in lines[place]
    assert lines[place + 1].strip() == (
        "-> let this user do that there (chown, chmod, mount), or put paths.state right"
    )
    assert lines[-1] == "1 fault (1 warning): do what the arrows say, then look again."


def test_without_settings() -> None:
    """Without settings the machine alone is looked at, and the way to settings is said."""
    result = call()
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:2] == [
        "skipped  settings      none are named, so only the machine is looked at",
        "                    -> write some with compactor init, or name them with --config FILE",
    ]


def test_settings_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is not there is the one fault."""
    result = call("--config", str(tmp_path / "no.toml"))
    assert result.exit_code == 2
    assert "FAULT    settings" in result.stdout
    assert "cannot be read (No such file or directory)" in result.stdout


def test_faults_of_settings_are_taken_apart() -> None:
    """What is set, and what to do: what was meant comes before the long list of what could have been."""
    assert settings_findings(
        [
            "a.b: 5 -> expected a string",
            "a.c: unknown key -> expected one of x, y; did you mean x?",
            "a.d: unknown key -> expected one of x, y",
            "no settings",
        ],
        "",
    ) == [
        fault("settings", "a.b: 5", "expected a string"),
        fault("settings", "a.c: unknown key", "did you mean x? It is one of x, y"),
        fault("settings", "a.d: unknown key", "expected one of x, y"),
        fault("settings", "no settings", "put it right and look again"),
    ]


def test_a_fault_of_settings_says_where_they_are() -> None:
    """The file is named once."""
    found = settings_findings(["a.b: 5 -> expected a string", "c.toml: bad -> expected TOML"], "c.toml")
    assert [each.found for each in found] == ["c.toml: a.b: 5", "c.toml: bad"]


@pytest.mark.parametrize(
    ("seconds", "state", "said"),
    [
        (0, "ok", "within 20 s"),
        (20, "ok", "within 20 s"),
        (21, "warning", "21 s behind"),
        (-300, "warning", "300 s ahead"),
        (301, "fault", "5 min behind"),
        (-3600, "fault", "60 min ahead"),
    ],
)
def test_clocks(seconds: float, state: str, said: str) -> None:
    """A clock may be off by as much as signs of life and signatures bear."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    found = clock_finding(now, now + timedelta(seconds=seconds), now)
    assert found.state == state
    assert said in found.found


def test_a_slow_answer_is_no_wrong_clock() -> None:
    """A time between question and answer is right, however long the answer took."""
    asked = datetime(2026, 1, 1, tzinfo=UTC)
    told, heard = asked + timedelta(minutes=10), asked + timedelta(minutes=20)
    assert clock_finding(asked, told, heard).state == "ok"


class Box:
    """A machine as the test wants it."""

    def __init__(self, **has: Any) -> None:
        self.has = has

    def python_version(self) -> tuple[int, ...]:
        return self.has.get("python", (3, 11, 0))

    def java(self) -> Java:
        return Java(None, "java", 17)

    def spark(self) -> SparkFound | None:
        return self.has.get("spark")

    def has_native(self) -> bool:
        return self.has.get("native", False)

    def scratch_folders(self) -> tuple[str, ...]:
        return ("/scratch",)

    def disk(self, path: str) -> Disk:
        return self.has["disks"][path]

    def tidied(self, path: str) -> Any:
        raise NotImplementedError(path)


def test_machines() -> None:
    """An old Python, no Spark and a missing engine are faults; another Spark and jars from afar are warnings."""
    assert python(Box(python=(3, 10, 9))).state == "fault"
    assert spark(Box()).state == "fault"
    assert spark(Box(spark=SparkFound("3.5.1", "shipped"))).state == "warning"
    assert spark(Box(spark=SparkFound("4.1.1", "shipped"))).state == "ok"
    assert s3a(Box(spark=SparkFound("4.1.1", "fetched"))).state == "ok"
    assert "s3a_jars" in s3a(Box(spark=SparkFound("4.1.1", "at start"))).next_move
    assert native(Box(), "native").state == "fault"
    assert native(Box(), "auto").state == "ok"


@pytest.mark.parametrize(
    ("free_bytes", "has_files", "state"),
    [(4 * GIB, True, "ok"), (4 * GIB - 1, True, "warning"), (2 * GIB - 1, True, "fault"), (9 * GIB, False, "fault")],
)
def test_disks(free_bytes: int, has_files: bool, state: str) -> None:
    """A disk has to hold what may be in flight, and new files; folders on one disk are one line."""
    disk = Disk("1", free_bytes, has_files)
    box = Box(disks={"/a": disk, "/b": disk, "/c": Disk("2", 9 * GIB)})
    found = disks(box, [("/a", "scratch"), ("/b", "paths.state"), ("/c", "paths.output")], 2 * GIB)
    assert [each.state for each in found] == [state, "ok"]
    assert found[0].found.endswith("/a (scratch), /b (paths.state)")


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """A local place on a full disk is told to be freed, not to be tried again."""
    full = Refusing(put=StoreUnavailable(f"{tmp_path}/x: the disk is full (No space left on device)"))
    around = Environment(ThisMachine({}), lambda: pytest.fail("nothing is on AWS"), full, ManualClock(), "1")
    checks = places_checks_of(around, load_settings(config_of(tmp_path), {}), "")
    found = {each.name: each for each in examine(checks, lambda: True)}
    assert found["state"] == fault(
        "state",
        f"{tmp_path}/own/state: the disk is full (No space left on device)",
        "free space or mend that disk, or put paths.state right",
    )


def raising(error: Exception) -> Finding:
    raise error


def test_one_failure_hides_no_other() -> None:
    """A check that fails in any way is a fault with a next move; those that do not need it go on."""
    errors = [
        AccessError("denied"),
        StoreUnavailable("timed\nout"),
        SettingsError(["a", "b"]),
        ZeroDivisionError("a bug"),
    ]
    checks = [Check(f"c{number}", lambda each=each: raising(each)) for number, each in enumerate(errors)]
    found = list(examine([*checks, Check("last", lambda: ok("last", "fine"))], lambda: True))
    assert [each.state for each in found] == ["fault"] * 4 + ["ok"]
    assert [each.found for each in found[:4]] == ["denied", "timed out", "a; b", "unexpected ZeroDivisionError: a bug"]
    assert all(each.next_move for each in found[:4])


def test_what_needs_a_failed_check_is_skipped() -> None:
    """It is skipped with the name of the first cause, also where that is far up."""
    checks = [
        Check("root", lambda: fault("root", "broken", "mend")),
        Check("warned", lambda: warning("warned", "odd", "look")),
        Check("branch", lambda: ok("branch", ""), needs=("root",)),
        Check("leaf", lambda: ok("leaf", ""), needs=("warned", "branch")),
        Check("other", lambda: ok("other", ""), needs=("warned",)),
    ]
    found = list(examine(checks, lambda: True))
    assert [each.state for each in found] == ["fault", "warning", "skipped", "skipped", "ok"]
    assert [each.found for each in found[2:4]] == ["first mend root"] * 2


def test_no_look_begins_when_the_time_is_over() -> None:
    """When the time is over, the rest is said not to have been looked at."""
    time = iter([True, False, False])
    found = list(examine([Check(name, lambda: ok("a", "")) for name in "abc"], lambda: next(time)))
    assert [each.state for each in found] == ["ok", "skipped", "skipped"]


def test_the_local_store_keeps_the_place_itself(tmp_path: Path) -> None:
    """Deleting a probe removes the folders made for it and no more."""
    store, uri = LocalStore(), probe(str(tmp_path / "state"), "put")
    (tmp_path / "state").mkdir()
    store.put(uri, b"")
    store.delete([uri])
    assert [each.name for each in tmp_path.rglob("*")] == ["state"]
