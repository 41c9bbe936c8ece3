"""Promises of the demo: its settings are valid, its AWS emulator leaves nothing running, and a lost row is noticed."""

import gzip
import os
import re
import select
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from click.testing import CliRunner

from compactor.adapters.aws.clients import dynamodb_client, s3_client
from compactor.adapters.aws.dynamo_claims import DynamoClaims
from compactor.adapters.aws.local_setup import make_buckets, make_claims_table
from compactor.adapters.aws.s3.store import S3Store
from compactor.cli.commands.demo import parse_size
from compactor.cli.entry import compactor as command
from compactor.core.errors import OperatorError
from compactor.core.text.safe_text import visible
from compactor.demo import kafka_day
from compactor.demo.events import BAD_LINES, LATE_KEY, DayCounts
from compactor.demo.local_aws import CREDENTIALS, local_aws
from compactor.demo.outcome import REASON_OF_KIND, Outcome, differences
from compactor.demo.scene import BUCKETS, REGION, TABLE, Scene
from compactor.ndjson.inspection import REASONS, inspect_lines
from compactor.ndjson.lines import Limits
from compactor.ops.verify.report import VerifyResult
from compactor.settings.settings import parse_settings
from compactor.wiring.settings_files import settings_at
from tests.support.hostile_names import check_shown, passed
from tests.support.memory_store import MemoryStore

SIZES = {"100mb": 100_000_000, "1gb": 1_000_000_000, "20 MB": 20_000_000}
LIMITS = Limits(max_line_bytes=1 << 20, max_decompressed_bytes=1 << 30)


@pytest.mark.parametrize(("text", "expected"), SIZES.items())
def test_sizes(text: str, expected: int) -> None:
    """Sizes are decimal, in either case."""
    assert parse_size(text) == expected


@pytest.mark.parametrize("total_bytes", SIZES.values())
def test_settings_hold(total_bytes: int, tmp_path: Path) -> None:
    """The settings that a demo writes have no fault, in folders and on the AWS emulator."""
    folders = Scene(f"{tmp_path}/raw/", f"{tmp_path}/lake/", total_bytes)
    local = parse_settings(tomllib.loads(folders.settings_toml()))
    assert (local.aws.endpoint_url, local.builder.claims) == ("", "")
    url = "http://127.0.0.1:5000"
    buckets = Scene("s3://raw/", "s3://lake/", total_bytes, url, f"{url}/123456789012/q")
    emulated = parse_settings(tomllib.loads(buckets.settings_toml()))
    assert (emulated.aws.endpoint_url, emulated.builder.claims) == ("http://127.0.0.1:5000", TABLE)
    topic = parse_settings(tomllib.loads(kafka_day._settings(tmp_path, "127.0.0.1:9092")))
    masters = {each.spark.conf["spark.master"] for each in (local, emulated, topic)}
    assert masters == {"local[*]"}, "where $SPARK_MASTER is set, the demo stays on this machine"


def test_every_flaw_is_expected_with_its_reason() -> None:
    """Each kind of bad line that the demo makes is rejected for the reason that the demo expects."""
    assert set(REASON_OF_KIND) == set(BAD_LINES)
    assert set(REASON_OF_KIND.values()) <= set(REASONS)
    for kind, spoil in BAD_LINES.items():
        rejects = []
        line = spoil(b'{"id":"1","currency":"EUR","units":1}') + b"\n"
        inspect_lines([line], LIMITS, on_reject=rejects.append, on_good=lambda _: None)
        assert [reject.reason for reject in rejects] == [REASON_OF_KIND[kind]], kind


def test_scene_has_known_flaws(tmp_path: Path) -> None:
    """The input of a small demo holds bad lines of every kind, compressed files, and the late key once."""
    store = MemoryStore()
    scene = Scene(f"{tmp_path}/raw/", f"{tmp_path}/lake/", 30_000_000)
    made = scene.write_events(store)
    files = list(store.list(scene.raw))
    assert len(files) == made.files
    assert all(made.bad_lines[kind] > 0 for kind in BAD_LINES)
    assert made.stored_bytes < made.decoded_bytes
    contents = [store.read(file.uri) for file in files]
    plain = [gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data for data in contents]
    assert plain != contents
    assert sum(data.count(LATE_KEY.encode()) for data in plain) == 1


MADE = DayCounts(files=2, stored_bytes=90, decoded_bytes=100, lines=10, bad_lines={"truncated": 1, "array": 2})
FOUND = Outcome(
    verification=VerifyResult(
        files_by_status=Counter(compacted=2),
        lines=10,
        rows=7,
        rejected_lines=3,
        rejects_by_reason=Counter(invalid_json=1, not_an_object=2),
    ),
    input_bytes=90,
    output_sizes=(30,),
    work_seconds=1.0,
    columns=("id", LATE_KEY),
)
CHANGES = {
    "a row too few": ({"rows": 6}, "rows: 7 went in, 6 came out"),
    "a row too many": ({"rows": 8}, "rows: 7 went in, 8 came out"),
    "another reason": ({"rejects_by_reason": Counter(invalid_json=3)}, "rejects by reason"),
    "a quarantined file": ({"files_by_status": Counter(compacted=1, missing=1)}, "input files: 2 went in, 1 came"),
    "a dead letter": ({"dead_letters": 1}, "dead letters"),
    "not done": ({"unfinished": 1}, "manifests not done"),
}


def test_no_difference() -> None:
    """Output that equals the input has no differences."""
    assert differences(MADE, FOUND) == []


@pytest.mark.parametrize(("change", "said"), CHANGES.values(), ids=CHANGES)
def test_differences(change: dict[str, object], said: str) -> None:
    """Any difference between input and output is named."""
    [difference] = differences(MADE, replace(FOUND, verification=replace(FOUND.verification, **change)))  # type: ignore[arg-type]
    assert said in difference


def test_a_lost_column_is_noticed() -> None:
    """The late key has to have become a column."""
    assert len(differences(MADE, replace(FOUND, columns=("id",)))) == 1


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def test_emulator_serves_what_the_demo_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets and a claims table can be made on it and used; it ends with its context."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with local_aws() as url:
        make_buckets(BUCKETS, region=REGION, endpoint_url=url)
        make_claims_table(TABLE, region=REGION, endpoint_url=url)
        store = S3Store(s3_client(REGION, url))
        assert store.create("s3://raw/one", b"1")
        assert not store.create("s3://raw/one", b"2")
        assert DynamoClaims(client=dynamodb_client(REGION, url), table=TABLE, ttl_days=1).get_many(["key"]) == {}
    with pytest.raises(Exception, match=url.removeprefix("http://")):
        s3_client(REGION, url, attempts=1).list_buckets()


KILLED_PARENT = """
import os, signal, subprocess, sys
command = [sys.executable, "-m", "compactor.demo.local_aws"]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
server.stdout.readline()
print(server.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_emulator_dies_with_its_parent() -> None:
    """A demo that is killed leaves no server behind."""
    parent = subprocess.Popen([sys.executable, "-c", KILLED_PARENT], stdout=subprocess.PIPE, text=True)
    output, _ = parent.communicate(timeout=60)
    server = int(output)
    descriptor = os.pidfd_open(server) if is_alive(server) else None
    if descriptor is not None:
        assert select.select([descriptor], [], [], 30)[0], "the server lives on"
        os.close(descriptor)


def test_emulator_that_cannot_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where moto is missing the error says what to install."""
    (tmp_path / "moto").mkdir()
    (tmp_path / "moto" / "__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(OperatorError, match=r"moto\.server.*expected moto: pip install"), local_aws():
        pass


def test_folder_must_be_empty(tmp_path: Path) -> None:
    """A demo refuses a folder that holds other files."""
    (tmp_path / "mine").write_text("")
    result = CliRunner().invoke(command, ["demo", "--local", str(tmp_path)])
    assert result.exit_code == 2
    assert "expected a new or empty folder" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


class FakeCommand:
    """A command that does nothing, and ends well."""

    called: ClassVar[list[list[bytes]]] = []

    def __init__(self, words: list[str], **_: object) -> None:
        self.called.append([b"compactor", *map(os.fsencode, words[3:])])

    def wait(self, *_: object) -> int:
        return 0

    def poll(self) -> int:
        return 0


@pytest.mark.parametrize(
    "name", ["two  $(touch pwned) 'x\"", "[red]x[/] *", "\x1b[2J\u202e", "line\nfeed; touch pwned"]
)
def test_what_the_demo_prints_is_safe(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the user keeps the files, nothing that is shown acts, and each command can be pasted."""
    monkeypatch.setattr("compactor.demo.commands.subprocess", SimpleNamespace(Popen=FakeCommand))
    monkeypatch.setattr(FakeCommand, "called", [])
    folder = tmp_path / name
    result = CliRunner().invoke(command, ["demo", "--size", "1mb", "--local", str(folder)])
    shown = check_shown(result.stdout_bytes)
    check_shown(result.stderr_bytes)
    if result.exit_code == 2:  # settings cannot have such a name
        assert re.search(r"expected .* without (control characters|\* \[ \])", result.stderr)
        return
    told = [line[2:] for line in shown.split("\n") if line.startswith("$ ")]
    assert [passed(line, tmp_path / "told") for line in told] == FakeCommand.called
    assert FakeCommand.called[0] == [b"compactor", b"plan", os.fsencode(folder / "raw") + b"/"]
    *reading, _, status = (line[2:] for line in shown.split("\n")[-7:-1])
    assert reading == [visible(each) for each in settings_at(str(folder / "demo.toml"), {}).reading_lines()[:-1]]
    assert passed(reading[-1], tmp_path / "moves")[:2] == [b"duckdb", b"-c"]
    assert passed(status, tmp_path / "moves") == [
        b"compactor",
        b"--config",
        os.fsencode(folder / "demo.toml"),
        b"status",
    ]
