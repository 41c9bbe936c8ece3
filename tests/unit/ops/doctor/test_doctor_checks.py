"""The checks of the doctor: each place is tried and left as it was, and no failure hides another one."""

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compactor.adapters.local.store import LocalStore
from compactor.cli.entry import compactor as command
from compactor.core.errors import AccessError, CompactorError, SettingsError, StoreUnavailable
from compactor.core.layout import is_delivery, is_seen_by_stream, probe
from compactor.ops.doctor.account_checks import clock_finding
from compactor.ops.doctor.checkup import Environment, checks_of
from compactor.ops.doctor.findings import Check, Finding, fault, ok, run_checks, settings_findings, warning
from compactor.ops.doctor.machine_checks import Disk, SparkFound, disks, native, s3a, spark
from compactor.ops.doctor.rights import ADD_ONLY, ALL, try_input, try_own_place
from compactor.ops.verify.files import surplus
from compactor.settings.settings import load_settings, parse_settings
from compactor.wiring import operating
from compactor.wiring.app import App
from tests.contract.doctor.workspace import ANSWER, install_java
from tests.support.extras import NATIVE
from tests.support.memory_store import ManualClock, MemoryStore

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
    """A server that ignores If-None-Match."""

    def create(self, uri: str, data: bytes) -> bool:
        self.put(uri, data)
        return True


def tried(store: MemoryStore, rights: tuple[Any, ...] = ALL, trial_id: str = "1") -> Finding:
    return try_own_place(store, "s3://own/state", "paths.state", rights, trial_id)


def test_a_place_that_may_be_used() -> None:
    """Every right is tried, and no object is left."""
    store = MemoryStore()
    assert tried(store) == ok("s3://own/state: can list, read, write, create-only write, delete")
    assert not list(store.list("s3://own/"))


def test_each_right_is_refused_by_itself() -> None:
    """The finding names the rights that are refused and those that were not tried; all others are tried."""
    denied = AccessError("s3://own/state/x: PutObject failed with AccessDenied: no")
    found = tried(Refusing(put=denied, list=AccessError("s3://own/state/: ListObjectsV2 failed with AccessDenied")))
    assert found.state == "fault"
    assert found.found == (
        "s3://own/state: cannot list, write: ListObjectsV2 failed with AccessDenied; "
        "PutObject failed with AccessDenied: no (not tried: read, create-only write, delete)"
    )
    assert found.next_move.startswith(
        "allow s3:ListBucket on arn:aws:s3:::own and s3:PutObject on arn:aws:s3:::own/state/*"
    )


def test_what_may_not_be_deleted() -> None:
    """Denied deletion is a fault where the compactor deletes; output needs no deletion, and does not fill up."""
    denied = AccessError("s3://own/state/: not deleted: AccessDenied: no")
    assert "cannot delete: not deleted: AccessDenied: no" in tried(Refusing(delete=denied)).found
    store = Refusing(delete=denied)
    for number in range(3):
        found = tried(store, ADD_ONLY, str(number))
        assert found == ok(
            "s3://own/state: can list, read, write; left behind, harmless: s3://own/state/_doctor/probe/put/_keep"
        )
    assert len(list(store.list("s3://own/"))) == 1


def test_a_server_without_create_only_writes() -> None:
    """A store that lets a second writer through is a fault: the ledger depends on it."""
    found = tried(Overwriting())
    assert found.state == "fault"
    assert "ignores If-None-Match, which the ledger depends on" in found.found
    assert "use a server that honours it" in found.next_move


def test_a_store_that_does_not_answer_is_asked_no_more() -> None:
    """A store that does not answer is one failure, not one for each right."""
    with pytest.raises(StoreUnavailable):
        tried(Refusing(put=StoreUnavailable("timed out")))


def test_input() -> None:
    """The doctor lists input and reads one byte of the first file; an empty place is a warning; nothing is written."""
    store = MemoryStore()
    place = ("s3://raw", "input.allowed_prefixes")
    assert try_input(store, *place) == warning(
        "s3://raw is empty", "if it should have files, correct input.allowed_prefixes"
    )
    store.put("s3://raw/folder/", b"")
    assert try_input(store, *place).state == "warning"
    store.put("s3://raw/folder/a.ndjson", b"{}")
    assert try_input(store, *place) == ok("s3://raw: can list, read")
    assert len(list(store.list("s3://raw/"))) == 2


def test_a_probe_is_not_taken_for_data() -> None:
    """No command takes probes that were left behind for manifests, output or state."""
    settings = parse_settings({"paths": PLACES, "input": {"allowed_prefixes": ["s3://raw"]}})
    app = App(settings, store=MemoryStore(), clock=ManualClock())
    for place in PLACES.values():
        for name in ("put", "create-1"):
            uri = probe(place, name)
            assert not is_delivery(uri)
            assert not is_seen_by_stream(uri.removeprefix(f"{place}/"), 6)
            app.store.put(uri, b"doctor")
    status = operating.status_reader(app).read()
    assert (status.backlog.manifests, status.backlog.begun_manifests, status.dead_letters.manifests) == (0, 0, 0)
    assert not list(surplus(app.state))


def config_of(folder: Path, **changes: str) -> Path:
    """Settings with local folders."""
    places = {name: f"{folder}/own/{name}" for name in PLACES} | changes
    path = folder / "settings.toml"
    lines = [f'{name} = "{place}"' for name, place in places.items()]
    path.write_text("\n".join(["[paths]", *lines, "[input]", f'allowed_prefixes = ["{folder}/raw"]']))
    return path


def call(*arguments: str) -> Result:
    env = {"COMPACTOR_CONFIG": None, "PATH": "/usr/bin:/bin"}
    return CliRunner().invoke(command, [*arguments, "doctor", "--elsewhere"], env=env)


def test_folders_stay_as_they_were(tmp_path: Path) -> None:
    """The doctor leaves no new folder behind, and does not replace an empty one."""
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
        f"ok       input         {tmp_path}/raw: can list, read",
        f"ok       manifests     {tmp_path}/own/manifests: can list, read, write, create-only write, delete",
        f"ok       output        {tmp_path}/own/output: can list, read, write",
        f"ok       state         {tmp_path}/own/state: can list, read, write, create-only write, delete",
        "skipped  aws           the settings name nothing on AWS",
        "No faults.",
    ]


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    """The finding names a local place that cannot be written to, its setting, and how to fix it."""
    (tmp_path / "raw").write_text("a file")
    (tmp_path / "taken").write_text("a file")
    result = call("--config", str(config_of(tmp_path, state=f"{tmp_path}/taken/state")))
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    place = next(index for index, line in enumerate(lines) if line.startswith("FAULT    state"))
    assert f"{tmp_path}/taken/state: cannot " in lines[place]
    assert lines[place + 1].strip() == (
        "-> give this user that right there (chown, chmod, mount), or correct paths.state"
    )
    assert lines[-1] == "1 fault (1 warning): follow the arrows, then run doctor again."


@NATIVE.needed
@pytest.mark.parametrize("java", [None, 11])
def test_without_settings(java: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what `compact` needs is checked: Java is a note, Spark is too, and no place is spoken of."""
    if java is not None:
        install_java(tmp_path, ANSWER.format(f"{java}.0.1"))
    monkeypatch.chdir(tmp_path)
    env = {"COMPACTOR_CONFIG": None, "PATH": str(tmp_path), "JAVA_HOME": None}
    with monkeypatch.context() as patched:
        patched.setattr("compactor.adapters.this_machine.find_spark", lambda: None)
        result = CliRunner().invoke(command, ["doctor"], env=env)
    assert result.exit_code == 0, result.stdout
    lines = result.stdout.splitlines()
    assert lines[:2] == [
        "skipped  settings      none, so the check covers only `compact`",
        "                    -> to check more, give DST or --config FILE, or run compactor init",
    ]
    said = "not found" if java is None else f"11 ({tmp_path}/java)"
    assert f"skipped  java          {said}; the native engine needs none, Spark needs 17 or 21" in lines
    assert "skipped  spark         not installed; the native engine does without it" in lines
    assert {line.split()[1] for line in lines[2:-1] if not line.startswith(" ")} == {
        *("native", "java", "spark", "aws", "disk")
    }
    assert lines[-1].startswith("No faults")


@NATIVE.needed
@pytest.mark.parametrize(("pattern", "said"), [("%{WORD:verb}", "ok       pattern"), ("%{NOPE:a}", "FAULT    pattern")])
def test_a_pattern_is_compiled(tmp_path: Path, pattern: str, said: str) -> None:
    """That of each stream of text."""
    grok = f'{{"pattern": "{pattern}"}}'
    env = {"COMPACTOR_CONFIG": None, "COMPACTOR_INPUT__FORMAT": "grok", "COMPACTOR_INPUT__GROK": grok}
    for name in ("raw", "manifests", "output", "state"):
        (tmp_path / name).mkdir()
        env[f"COMPACTOR_PATHS__{name.upper()}"] = str(tmp_path / name)
    env["COMPACTOR_INPUT__ALLOWED_PREFIXES"] = env.pop("COMPACTOR_PATHS__RAW")
    (tmp_path / "c.toml").write_text("")
    result = CliRunner().invoke(command, ["--config", str(tmp_path / "c.toml"), "doctor"], env=env)
    assert said in result.stdout, result.stdout


@NATIVE.needed
def test_a_folder_of_compact_needs_no_java(tmp_path: Path) -> None:
    """The settings that `compact` keeps are no job's: without Java they have no fault."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "2026-01-01.ndjson").write_text('{"a": 1}\n')
    os.utime(tmp_path / "raw" / "2026-01-01.ndjson", (1, 1))
    env = {"COMPACTOR_CONFIG": None, "PATH": str(tmp_path), "JAVA_HOME": None}
    words = [str(tmp_path / "raw"), str(tmp_path / "rows")]
    assert CliRunner().invoke(command, ["compact", *words], env=env).exit_code == 0
    result = CliRunner().invoke(command, ["doctor", words[1]], env=env)
    assert (result.exit_code, "skipped  java " in result.stdout) == (0, True), result.stdout


def test_settings_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing settings file is one fault."""
    result = call("--config", str(tmp_path / "no.toml"))
    assert result.exit_code == 2
    assert "FAULT    settings" in result.stdout
    assert "cannot be read (No such file or directory)" in result.stdout


def test_faults_of_settings_are_taken_apart() -> None:
    """The finding is what is set, the next action what to set; the likely name comes before the list of all."""
    assert settings_findings(
        [
            "a.b: 5 -> expected a string",
            "a.c: unknown key -> expected one of x, y; did you mean x?",
            "a.d: unknown key -> expected one of x, y",
            "no settings",
        ],
        "",
    ) == [
        Finding("settings", "fault", "a.b: 5", "expected a string"),
        Finding("settings", "fault", "a.c: unknown key", "did you mean x? It is one of x, y"),
        Finding("settings", "fault", "a.d: unknown key", "expected one of x, y"),
        Finding("settings", "fault", "no settings", "correct it and run doctor again"),
    ]


def test_a_fault_of_settings_says_where_they_are() -> None:
    """Every finding about settings names the file once."""
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
    """A clock may be off by as much as heartbeats and signatures allow."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    found = clock_finding(now, now + timedelta(seconds=seconds), now)
    assert found.state == state
    assert said in found.found


def test_a_slow_answer_is_no_wrong_clock() -> None:
    """A server time between request and answer is right, however long the answer took."""
    asked = datetime(2026, 1, 1, tzinfo=UTC)
    told, heard = asked + timedelta(minutes=10), asked + timedelta(minutes=20)
    assert clock_finding(asked, told, heard).state == "ok"


def test_machines() -> None:
    """No Spark and a missing engine are faults; another Spark and missing jars are warnings."""
    assert spark(None).state == "fault"
    assert spark(SparkFound("3.5.1", "shipped")).state == "warning"
    assert spark(SparkFound("4.1.1", "shipped")).state == "ok"
    assert s3a(SparkFound("4.1.1", "fetched")).state == "ok"
    assert "s3a_jars" in s3a(SparkFound("4.1.1", "at start")).next_move
    assert native("native", why_not="the native engine is not installed").state == "fault"
    assert native("auto", why_not="the native engine is not installed").state == "ok"


@pytest.mark.parametrize(
    ("free_bytes", "has_files", "state"),
    [(4 * GIB, True, "ok"), (4 * GIB - 1, True, "warning"), (2 * GIB - 1, True, "fault"), (9 * GIB, False, "fault")],
)
def test_disks(free_bytes: int, has_files: bool, state: str) -> None:
    """A disk needs room for what may be in flight, and free inodes; folders on one disk are one line."""
    disk = Disk("1", free_bytes, has_files)
    of_path = {"/a": disk, "/b": disk, "/c": Disk("2", 9 * GIB)}
    folders = [("/a", "scratch"), ("/b", "paths.state"), ("/c", "paths.output")]
    found = disks(folders, 2 * GIB, of_path.__getitem__)
    assert [each.state for each in found] == [state, "ok"]
    assert found[0].found.endswith("/a (scratch), /b (paths.state)")


def test_claims_that_cannot_be_read(tmp_path: Path) -> None:
    """Nothing can be planned without them, so that the doctor says so, too; it makes no file of its own."""
    config = config_of(tmp_path)
    call("--config", str(config))
    place = Path(load_settings(config, {}).claims_layout.claims_file)
    assert not place.exists()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"no database" * 100)
    result = call("--config", str(config))
    assert result.exit_code == 2
    assert f"claims in {place}: file is not a database" in result.stdout


def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """The next action for a local place on a full disk is to free space, not to try again."""
    full = Refusing(put=StoreUnavailable(f"{tmp_path}/x: the disk is full (No space left on device)"))
    env = Environment(
        account=lambda: pytest.fail("nothing is on AWS"),
        store=full,
        clock=ManualClock(),
        listed=lambda _: None,
        trial_id="1",
        columns=lambda _: {},
        kinesis=lambda _: pytest.fail("no stream is named"),
        kafka=lambda _: pytest.fail("no topic is named"),
        ask_claims=lambda _: None,
    )
    checks = checks_of(env, load_settings(config_of(tmp_path), {}), "")
    found = {each.name: each for each in run_checks(checks, lambda: True)}
    assert found["state"] == Finding(
        "state",
        "fault",
        f"{tmp_path}/own/state: the disk is full (No space left on device)",
        "free space or fix that disk, or correct paths.state",
    )


def raising(error: Exception) -> Finding:
    raise error


def test_one_failure_hides_no_other() -> None:
    """A check that fails in any way is a fault with a next action; the others go on."""
    errors = [
        AccessError("denied"),
        StoreUnavailable("timed\nout"),
        SettingsError(["a", "b"]),
        ZeroDivisionError("a bug"),
    ]
    checks = [Check(f"c{number}", lambda each=each: raising(each)) for number, each in enumerate(errors)]
    found = list(run_checks([*checks, Check("last", lambda: ok("fine"))], lambda: True))
    assert [each.state for each in found] == ["fault"] * 4 + ["ok"]
    assert [each.found for each in found[:4]] == ["denied", "timed out", "a; b", "unexpected ZeroDivisionError: a bug"]
    assert all(each.next_move for each in found[:4])


def test_what_needs_a_failed_check_is_skipped() -> None:
    """A check is skipped with the name of the root cause, even through other skipped checks."""
    checks = [
        Check("root", lambda: fault("broken", "fix it")),
        Check("warned", lambda: warning("odd", "check it")),
        Check("branch", lambda: ok(""), needs=("root",)),
        Check("leaf", lambda: ok(""), needs=("warned", "branch")),
        Check("other", lambda: ok(""), needs=("warned",)),
    ]
    found = list(run_checks(checks, lambda: True))
    assert [each.state for each in found] == ["fault", "warning", "skipped", "skipped", "ok"]
    assert [each.found for each in found[2:4]] == ["fix root first"] * 2


def test_no_check_starts_when_the_time_is_over() -> None:
    """When the time is over, the remaining checks are skipped, and say so."""
    time = iter([True, False, False])
    found = list(run_checks([Check(name, lambda: ok("")) for name in "abc"], lambda: next(time)))
    assert [each.state for each in found] == ["ok", "skipped", "skipped"]


def test_the_local_store_keeps_the_place_itself(tmp_path: Path) -> None:
    """Deleting a probe removes the folders made for it and no more."""
    store, uri = LocalStore(), probe(str(tmp_path / "state"), "put")
    (tmp_path / "state").mkdir()
    store.put(uri, b"")
    store.delete([uri])
    assert [each.name for each in tmp_path.rglob("*")] == ["state"]
