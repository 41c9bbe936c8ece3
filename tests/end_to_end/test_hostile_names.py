"""Names of a hostile producer, through every command: nothing acts on the terminal, no line is forged, nothing runs."""

import ast
import gzip
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from compactor.cli.entry import compactor as command
from compactor.core.text.safe_text import visible
from tests.support import extras
from tests.support.hostile_names import NAMES, NOT_TEXT, check_shown, passed
from tests.support.reading import printed
from tests.support.report_pages import read_page
from tests.support.sampling import few

pytestmark = extras.NATIVE.needed

GOOD, DAMAGED = b'{"a": 1}\nno json\n', gzip.compress(b'{"a": 1}\n' * 99)[:-9]
ALL = {**NAMES, **NOT_TEXT}
OF_THE_USER = ['it\'s "q"', "$(touch pwned)", "`touch pwned`; x", "two  spaces", "\u202ex", "plain"]


class Lake:
    """Folders with hostile names, below one with an ordinary name; each name has a good and a damaged file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.raw, self.out = root / "raw", root / "rows"
        self.raw.mkdir()
        for name in ALL.values():
            self.write(self.path(name), GOOD)
            self.write(self.path(name) + b".damaged" if len(name) < 240 else self.path(name)[:-1] + b"d", DAMAGED)
        keys = json.dumps({name.decode(): 1 for name in NAMES.values()}).encode()
        self.write(os.fsencode(self.raw / "keys" / "file"), keys + b"\n")
        (root / "rows.compactor" / "manifests").mkdir(parents=True)
        for number, name in enumerate(NAMES.values()):
            self.write_manifest(f"uri-{number}.json", {"uri": f"/elsewhere/{name.decode()}"})
            self.write_manifest(os.fsdecode(name[:240] + b".json"), {"uri": ""})
            self.write_manifest(f"id-{number}.json", {"uri": str(self.raw)}, manifest_id=name.decode())
        self.write_manifest("long.json", {"uri": f"{self.raw}/none"}, manifest_id="i" * 200)

    def path(self, name: bytes) -> bytes:
        return os.fsencode(self.raw) + b"/" + name + b"/" + name

    def write(self, path: bytes, data: bytes) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(data)
        os.utime(path, (1_700_000_000, 1_700_000_000))

    def write_manifest(self, name: str, file: dict[str, str], *, manifest_id: str = "") -> None:
        document = {"version": 1, "manifest_id": manifest_id or name[:-5], "date": "2026-01-02", "files": [file]}
        (self.root / "rows.compactor" / "manifests" / name.replace("/", "_")).write_text(json.dumps(document))

    def call(self, *arguments: str | bytes) -> Result:
        """A command; whatever it shows is checked, as text and as JSON."""
        words = [os.fsdecode(each) for each in arguments]
        result = CliRunner().invoke(command, ["--log-format", "text", *words])
        check_shown(result.stdout_bytes)
        check_shown(result.stderr_bytes)
        return result

    def with_settings(self, *arguments: str | bytes) -> Result:
        return self.call("--config", str(self.root / "rows.compactor" / "compactor.toml"), *arguments)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    made = Lake(tmp_path_factory.mktemp("hostile"))
    before = os.getcwd()  # noqa: PTH109
    os.chdir(made.root)
    assert made.call("compact", "raw", "rows").exit_code == 3
    yield made
    os.chdir(before)
    assert not (made.root / "pwned").exists()


EVERYTHING = [
    ["compact", "raw", "rows", "--dry-run"],
    ["compact", "raw", "rows"],
    ["plan", "raw", "--dry-run"],
    ["status"],
    ["verify"],
    ["verify", "--deep"],
    ["redrive", "files", "--dry-run"],
    ["redrive", "manifests", "--dry-run"],
    ["redrive", "rejects", "--dry-run"],
    ["report", "--out", "-", "--hours", "30000"],
    ["report", "--out", "report.html"],
    ["schema", "show"],
    ["data", "clean", "--dry-run", "--archive-days", "0"],
    ["stop"],
    ["doctor"],
]


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("arguments", EVERYTHING, ids=" ".join)
def test_every_output_is_safe(lake: Lake, arguments: list[str], as_json: bool) -> None:
    """No command shows a character that acts, and --json is one exact document."""
    if as_json:
        arguments = [each for each in arguments if each not in {"--out", "-", "report.html"}] + ["--json"]
    call = lake.call if arguments[0] == "compact" else lake.with_settings
    result = call(*arguments)
    assert result.exit_code in {0, 2, 3}, result.stderr
    assert "unexpected" not in result.stderr
    if as_json:
        json.loads(result.stdout_bytes)


def test_what_is_wrong_is_named(lake: Lake) -> None:
    """The names are shown all the same, as text: hidden names would be no help."""
    files = json.loads(lake.with_settings("verify", "--json").stdout)["quarantined_files"]
    assert {each["uri"].encode().split(b"/")[-2] for each in files} >= set(NAMES.values())
    shown = lake.with_settings("verify").stdout
    assert visible(files[0]["uri"]) in shown
    page = read_page(lake.with_settings("report", "--out", "-", "--hours", "30000").stdout)
    assert not page.named("img")
    assert not page.named("script")


@pytest.mark.parametrize("name", [*few(NAMES.values(), 6), *NOT_TEXT.values()], ids=ALL)
def test_each_file_can_be_traced(lake: Lake, name: bytes, tmp_path: Path) -> None:
    """A file is found under any name, and the next command passes exactly its arguments, as text and in JSON."""
    path = lake.path(name)
    found = json.loads(lake.with_settings("trace", path, "--json").stdout_bytes)
    assert found["uri"] == os.fsdecode(path)
    shown = lake.with_settings("trace", path)
    if name in NAMES.values():
        assert (found["state"], shown.exit_code) == ("done", 0)
        [move] = found["next_moves"]
        assert move in shown.stdout
        named = [] if name.endswith(b"\n") else [b"--file", path]
        assert passed(move, tmp_path) == [b"compactor", b"rejects", os.fsencode(lake.out), *named]
    else:
        assert (found["state"], found["next_moves"], shown.exit_code) == ("unknown", [], 1)
        assert "not Unicode" in shown.stderr


@pytest.mark.parametrize("name", few(NAMES.values(), 6), ids=NAMES)
def test_the_command_that_takes_a_file(lake: Lake, name: bytes, tmp_path: Path) -> None:
    """A folder is compacted again; `plan` takes a folder byte for byte."""
    folder = os.fsencode(lake.raw) + b"/new " + name[:250]
    lake.write(folder + b"/file", GOOD)
    found = json.loads(lake.with_settings("trace", folder + b"/file", "--json").stdout_bytes)
    [move] = found["next_moves"]
    assert move in lake.with_settings("trace", folder + b"/file").stderr
    assert passed(move, tmp_path) == [b"compactor", b"compact", os.fsencode(lake.raw), os.fsencode(lake.out)]
    planned = json.loads(lake.with_settings("plan", "--dry-run", "--json", "--", folder).stdout)
    assert sum(each["files"] for each in planned["manifests"]) == 1


def test_ids_of_refused_manifests(lake: Lake) -> None:
    """A second manifest of a long id gets a longer one, by which every command finds it."""
    for number in range(2):
        lake.write_manifest(f"twice-{number}.json", {"uri": f"{lake.raw}/none{number}"}, manifest_id="d" * 200)
    lake.call("compact", "raw", "rows")
    letters = json.loads(lake.with_settings("verify", "--json").stdout)["dead_letter_manifests"]
    [letter] = [each["manifest_id"] for each in letters if each["manifest_id"].startswith("d" * 200)]
    assert len(letter) == 217
    traced = json.loads(lake.with_settings("trace", letter, "--json").stdout)
    assert (traced["kind"], traced["state"]) == ("manifest", "dead_lettered")
    assert lake.with_settings("verify", "--manifest", letter).exit_code == 3
    assert lake.with_settings("redrive", "manifests", "--manifest", letter, "--dry-run").exit_code in {0, 3}


def test_commands_for_places_of_the_user(lake: Lake, tmp_path: Path) -> None:
    """The closing lines of `compact` can be pasted wherever the user keeps the rows."""
    raw = tmp_path / "raw"
    lake.write(os.fsencode(raw / "good"), GOOD)
    lake.write(os.fsencode(raw / "damaged"), DAMAGED)
    for number, name in enumerate(OF_THE_USER):
        out = tmp_path / name
        lines = lake.call("compact", str(raw), str(out)).stdout.split("\n")
        moves = {line[:12].strip(): line[12:].partition("   (or")[0] for line in lines}
        rows = os.fsencode(out)
        assert passed(moves["see why"], tmp_path / f"a{number}") == [b"compactor", b"verify", rows]
        dismiss = moves["next"].removeprefix("or give it up: remove it, or ")
        words = [b"compactor", b"dismiss", b"--in", rows, os.fsencode(raw / "damaged"), b"--why", b"late"]
        assert passed(dismiss.replace("<TEXT>", "late"), tmp_path / f"a{number}") == words


def test_the_query_for_places_of_the_user(tmp_path: Path) -> None:
    """So can the query that reads the rows."""
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "file").write_bytes(b'{"a": 1}\n')
    os.utime(tmp_path / "raw" / "file", (1_700_000_000, 1_700_000_000))
    for number, name in enumerate(OF_THE_USER):
        result = CliRunner().invoke(command, ["compact", str(tmp_path / "raw"), str(tmp_path / name)])
        place = str(tmp_path / name)
        for line in printed(check_shown(result.stdout_bytes)):
            if line.startswith("duckdb "):
                glob = f"{place}/**/*.parquet".replace("'", "''")
                query = f"FROM read_parquet('{glob}', union_by_name = true)"
                assert passed(line, tmp_path / f"b{number}") == [b"duckdb", b"-c", query.encode()]
            else:
                called = ast.parse(line, mode="eval").body
                assert isinstance(called, ast.Call)
                assert str(ast.literal_eval(called.args[0])).removesuffix("/*") == place


@pytest.mark.parametrize(
    "arguments", few([["verify"], ["status"], ["no such \x1b]0;x\x07"], ["trace", "line feed"]], 2)
)
def test_on_a_terminal(lake: Lake, arguments: list[str]) -> None:
    """On a terminal there are colours and a moving cursor, and still nothing of what is in names."""
    words = [os.fsdecode(lake.path(NAMES[each])) if each in NAMES else each for each in arguments]
    config = str(lake.root / "rows.compactor" / "compactor.toml")
    mine, its = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "compactor", "--config", config, *words], stdin=its, stdout=its, stderr=its
    ):
        os.close(its)
        data = b""
        while piece := _read(mine):
            data += piece
    os.close(mine)
    assert check_shown(data, on_terminal=True).strip()


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 65536)
    except OSError:  # EIO: the process has ended
        return b""


def test_usage_errors_quote_safely(lake: Lake) -> None:
    """What a pattern of the shell put on the command line is quoted in no other way."""
    words = [lake.path(name) for name in ALL.values()]
    title = NAMES["title"]
    for arguments in (["trace", *words], ["status", *words], [NAMES["line feed"], "x"], ["plan", b"ftp://" + title]):
        result = lake.with_settings(*arguments)
        assert result.exit_code == 2
        assert re.search("rror|expected", result.stderr)
