"""Promises of `compactor compact`: rows, closing lines, exit codes, repeats, interruptions, and two calls at once."""

import gzip
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

from compactor import compact
from compactor.adapters.local.sqlite.claims import SqliteClaims
from compactor.adapters.local.store import LocalStore
from compactor.cli.entry import compactor as command
from compactor.cli.ui.progress import CompactProgress
from compactor.job.results import Result
from tests.support import extras
from tests.support.compacting import call, write

pytestmark = extras.NATIVE.needed

DAYS = [f"2025-12-{day:02d}" for day in range(1, 13)]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same batches on every machine."""
    monkeypatch.setattr("compactor.adapters.local.native.threads.os.sched_getaffinity", lambda _pid: {0}, raising=False)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "my raw"
    folder.mkdir()
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "rows"


def lines(*numbers: int) -> bytes:
    return b"".join(b'{"id": %d}\n' % number for number in numbers)


def document(*arguments: object) -> tuple[dict[str, Any], int]:
    result = call(*arguments, "--json")
    return json.loads(result.stdout), result.exit_code


def ids(out: Path) -> Counter[str]:
    return Counter(ds.dataset(out, format="parquet").to_table().column("id").to_pylist())


def test_a_folder_becomes_rows(raw: Path, out: Path) -> None:
    """Plain and compressed files, with any name, are rows below DST and nothing else; rejects are beside it."""
    write(raw / "a b ünï%20#[1].ndjson", lines(1, 2) + b"no json\n\n")
    write(raw / "c", gzip.compress(lines(3)))
    write(raw / "_SUCCESS", b"")
    result = call(raw, out)
    assert result.exit_code == 0, result.output
    assert ids(out) == {"1": 1, "2": 1, "3": 1}
    assert "new       2 files" in result.stdout
    assert "skipped   _SUCCESS (Spark marker)" in result.stdout
    assert "5 lines = 3 rows + 1 reject + 1 blank" in result.stdout
    assert f"1 invalid_json\n          {out}.compactor/state/rejects/" in result.stdout
    rejects = ds.dataset(f"{out}.compactor/state/rejects", format="parquet").to_table().to_pylist()
    assert [row["raw"] for row in rejects] == [b"no json"]


def test_a_second_call_takes_what_is_new(raw: Path, out: Path) -> None:
    """Nothing is taken twice; a new file is taken alone, and all is verified again."""
    write(raw / "a.ndjson", lines(1))
    assert document(raw, out)[0]["new_files"] == 1
    second, code = document(raw, out)
    assert (second["new_files"], second["planned_before"], second["run"]["committed"], code) == (0, 1, 0, 0)
    assert second["verified"]["rows"] == 1
    write(raw / "b.ndjson", lines(2))
    third, code = document(raw, out)
    assert (third["new_files"], third["planned_before"], third["run"]["records"], code) == (1, 1, 1, 0)
    assert ids(out) == {"1": 1, "2": 1}


def test_a_replaced_file_is_quarantined(raw: Path, out: Path) -> None:
    """Its new version is not taken before a person decides; both versions are named, and the restored one is fine."""
    write(raw / "2025-12-01.ndjson", lines(1))
    call(raw, out)
    shutil.copy2(raw / "2025-12-01.ndjson", raw.parent / "kept")
    write(raw / "2025-12-01.ndjson", lines(2, 1))
    for _ in range(2):
        result = call(raw, out)
        assert (result.exit_code, ids(out)) == (3, {"1": 1})
        assert f"quarantined  {raw}/2025-12-01.ndjson (replaced: " in result.stdout
        assert "has compacted 10 bytes written 20" in result.stdout
        assert "now it is 20 bytes written 20" in result.stdout
    [told] = document(raw, out)[0]["left_out"]
    assert (told["uri"], told["reason"]) == (str(raw / "2025-12-01.ndjson"), "replaced")
    (raw.parent / "kept").rename(raw / "2025-12-01.ndjson")
    assert call(raw, out).exit_code == 0


def test_a_replaced_file_is_appended_by_choice(raw: Path, out: Path) -> None:
    """With --on-replaced append all of its lines are taken once more, and the call says so."""
    write(raw / "2025-12-01.ndjson", lines(1))
    call(raw, out)
    write(raw / "2025-12-01.ndjson", lines(2, 1))
    result = call(raw, out, "--on-replaced", "append")
    assert result.exit_code == 0
    assert ids(out) == {"1": 2, "2": 1}
    assert "1 file replaced since an earlier call: all its lines were added again" in result.stderr


def test_a_file_that_is_replaced_from_day_to_day_is_told(raw: Path, out: Path) -> None:
    """Without a date in its name its lines would count for another day; the call says that it was replaced."""
    write(raw / "app.log", lines(1))
    os.utime(raw / "app.log", (1_700_000_000, 1_700_000_000))
    call(raw, out)
    write(raw / "app.log", lines(2, 1))
    append = ("--on-replaced", "append")
    for words, files, code in [((), 0, 3), ((*append, "--dry-run"), 1, 0), (append, 1, 0)]:
        again, found = document(raw, out, *words)
        assert (again["new_files"], again["replaced"], found) == (files, 1, code)
    assert document(raw, out)[0]["replaced"] == 0


def test_a_folder_reached_by_a_link_is_the_same_folder(raw: Path, out: Path) -> None:
    """A call that reaches any of the places by a symbolic link knows what earlier calls took."""
    write(raw / "a.ndjson", lines(1))
    call(raw, out)
    linked = out.parent / "linked"
    linked.mkdir()
    for folder in (raw, out, Path(f"{out}.compactor")):
        (linked / folder.name).symlink_to(folder)
    for words in [
        (linked / raw.name, out),
        (raw, linked / out.name),
        (raw, out, "--state", linked / f"{out.name}.compactor"),
    ]:
        again, code = document(*words)
        assert (again["new_files"], again["planned_before"], code) == (0, 1, 0)
    assert ids(out) == {"1": 1}


def test_links_are_reported(raw: Path, out: Path) -> None:
    """A link to a file of SRC is skipped and counted; links that lead out, and links to folders, are not taken."""
    write(raw / "a.ndjson", lines(1))
    elsewhere = raw.parent / "elsewhere"
    elsewhere.mkdir()
    write(elsewhere / "b.ndjson", lines(2))
    (raw / "b").symlink_to(elsewhere / "b.ndjson")
    (raw / "c").symlink_to("a.ndjson")
    (raw / "sub").mkdir()
    (raw / "sub" / "more").symlink_to(elsewhere)
    (raw / "sub" / "up").symlink_to(raw)
    (raw / "gone").symlink_to("nowhere")
    (raw / ".#lock").symlink_to("user@host.1:2")
    for result in (call(raw, out, "--dry-run"), call(raw, out)):
        words = result.stdout
        assert result.exit_code == 3
        assert f"{raw}/sub/more (a symbolic link to a folder, which is not followed) and 1 more" in words
        assert f"{raw}/b (a symbolic link that points outside input.allowed_prefixes)" in words
        assert f"{raw}/gone (a broken symbolic link)\n" in words
        assert "restore the target of the link" in words or "would take" in words
        assert "c (a symbolic link to a file that is input itself)" in words
    assert ids(out) == {"1": 1}


@pytest.mark.parametrize(
    ("sources", "words", "rows"),
    [
        (["my raw"], [], {"1": 1, "2": 1}),
        (["way"], [], {"1": 1, "2": 1}),
        (["my raw/old/*", "my raw/*"], [], {"1": 1, "2": 1}),
        (["my raw/current", "my raw/old/a.log", "my raw/b.log"], [], {"1": 1, "2": 1}),
        (["my raw/current"], [], {"1": 1}),
        (["my raw/*"], [], {"1": 1, "2": 1}),
        (["my raw"], ["--exclude", "a.log"], {"1": 1, "2": 1}),
        (["my raw"], ["--exclude", "current"], {"1": 1, "2": 1}),
    ],
)
def test_a_link_to_a_log_doubles_no_line(
    raw: Path, out: Path, sources: list[str], words: list[str], rows: dict[str, int]
) -> None:
    """A link such as `current` is the file it leads to: it is taken only if that file itself is not input."""
    (raw / "old").mkdir()
    write(raw / "old" / "a.log", lines(1))
    write(raw / "b.log", lines(2))
    (raw / "current").symlink_to("old/a.log")
    (raw.parent / "way").symlink_to(raw)
    for _ in range(2):
        assert call(*(raw.parent / each for each in sources), out, *words).exit_code == 0
    assert ids(out) == rows


def test_a_plan_takes_no_link_to_input(raw: Path, out: Path) -> None:
    """`plan` decides as `compact` does: a log and a link to it are one file."""
    write(raw / "a.ndjson", lines(1))
    call(raw, out)
    write(raw / "b.ndjson", lines(2))
    (raw / "current").symlink_to(raw / "b.ndjson")
    planned = CliRunner().invoke(command, ["--config", f"{out}.compactor/compactor.toml", "plan", str(raw)])
    assert (planned.exit_code, planned.stdout.count("a symbolic link to a file that is input itself")) == (0, 1)
    assert call(raw, out).exit_code == 0
    assert ids(out) == {"1": 1, "2": 1}


def test_a_name_that_is_not_unicode_is_not_passed_over_in_silence(raw: Path, out: Path) -> None:
    """A file that no manifest can name needs a person, who renames or excludes it."""
    write(raw / "a.ndjson", lines(1))
    write(raw / "caf\udce9.ndjson", lines(2))
    for words in (["--dry-run"], [], ["--json"]):
        result = call(raw, out, *words)
        assert result.exit_code == 3
        assert "invalid in a manifest" in result.stdout
    assert ids(out) == {"1": 1}
    assert call(raw, out, "--exclude", "caf?.ndjson").exit_code == 0


def test_links_alone_are_no_data(raw: Path, out: Path) -> None:
    """A folder of nothing but links that lead out says why there is nothing to do."""
    write(raw.parent / "b.ndjson", lines(2))
    (raw / "b").symlink_to(raw.parent / "b.ndjson")
    result = call(raw, out)
    assert result.exit_code == 2
    assert "holds no files with data (1 symbolic link not followed)" in result.stderr


def test_a_link_in_place_of_a_planned_file(raw: Path, out: Path) -> None:
    """A file that became a link out of SRC after it was planned is quarantined with words; its neighbours are rows."""
    write(raw / "a.ndjson", lines(1))
    call(raw, out)
    write(raw / "b.ndjson", lines(2))
    write(raw / "c.ndjson", lines(3))
    settings = f"{out}.compactor/compactor.toml"
    assert CliRunner().invoke(command, ["--config", settings, "plan", str(raw)]).exit_code == 0
    (raw.parent / "private").write_bytes(lines(4))
    (raw / "c.ndjson").unlink()
    (raw / "c.ndjson").symlink_to(raw.parent / "private")
    result, code = document(raw, out)
    assert code == 3
    [file] = result["verified"]["quarantined_files"]
    assert (file["uri"], file["status"]) == (str(raw / "c.ndjson"), "forbidden")
    assert file["detail"] == f"cannot read {raw}/c.ndjson: a symbolic link points outside {raw}"
    assert ids(out) == {"1": 1, "2": 1}
    traced = CliRunner().invoke(command, ["--config", settings, "trace", str(raw / "c.ndjson")])
    assert traced.exit_code == 3
    assert f"points outside {raw}" in traced.stdout


def test_rows_that_nothing_is_known_of_are_not_made_again(raw: Path, out: Path) -> None:
    """Rows without their state stop a first call; lost settings alone do not."""
    write(raw / "a.ndjson", lines(1))
    call(raw, out)
    (out.parent / "rows.compactor" / "compactor.toml").unlink()
    assert document(raw, out)[0]["planned_before"] == 1
    shutil.rmtree(out.parent / "rows.compactor")
    for words in [(raw, out), (raw, out, "--state", out.parent / "elsewhere"), (raw, out, "--dry-run")]:
        result = call(*words)
        assert (result.exit_code, "-> expected an empty folder, or --state" in result.stderr) == (2, True)
    assert ids(out) == {"1": 1}


def test_other_commands_take_the_settings_that_are_kept(raw: Path, out: Path) -> None:
    """The closing lines show the commands, and edits of the settings file stay."""
    write(raw / "a.ndjson", lines(1))
    settings = f"{out}.compactor/compactor.toml"
    assert f"compactor status {out} " in call(raw, out, "--names", "exact").stdout
    for words in (["status"], ["verify"], ["schema", "show"]):
        assert CliRunner().invoke(command, ["--config", settings, *words]).exit_code == 0
    kept = Path(settings).read_text()
    assert tomllib.loads(kept)["schema"]["names"] == "exact"
    Path(settings).write_text(kept + "\n# edited\n")
    assert call(raw, out).exit_code == 0
    assert Path(settings).read_text().endswith("# edited\n")


def test_quarantined_files_are_reported(raw: Path, out: Path) -> None:
    """A truncated file is quarantined with its reason, the rest becomes rows, and the next actions can be copied."""
    write(raw / "a.ndjson", lines(1))
    write(raw / "b.gz", gzip.compress(lines(*range(1000)))[:-20])
    result = call(raw, out)
    assert result.exit_code == 3
    assert ids(out) == {"1": 1}
    assert f"quarantined  {raw}/b.gz (truncated gzip: ends at about byte " in result.stdout
    again = f"compactor compact {shlex.quote(str(raw))} {out}"
    assert f"next        have it delivered complete under its name, then {again}\n" in result.stdout
    again, code = document(raw, out)
    assert (code, again["needs_operator"], again["is_unfinished"], again["backlog"]["manifests"]) == (3, True, False, 0)
    write(raw / "b.gz", gzip.compress(lines(2)))
    call(raw, out)
    assert ids(out) == {"1": 1, "2": 1}


def test_what_another_planner_keeps_is_not_done(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that outlasts every pause, as after a jump of the clock, gives exit code 1."""
    write(raw / "a.ndjson", lines(1))
    call(raw, out)
    write(raw / "b.ndjson", lines(2))
    info = LocalStore().stat(f"{raw}/b.ndjson")
    assert info is not None
    claims = SqliteClaims(f"{out}.compactor/state/claims.sqlite")
    claims.claim([f"{info.uri}#{info.etag}"], "dead", now=datetime.now(UTC) + timedelta(days=1), lease_seconds=20)
    clock = SimpleNamespace(sleep=lambda _seconds: None, monotonic=time.monotonic)
    monkeypatch.setattr("compactor.api.folder_run.time", clock)
    result = call(raw, out)
    assert (result.exit_code, ids(out)) == (1, {"1": 1})
    assert "1 file claimed by another planner: run this command again later" in result.stderr


def test_what_does_not_add_up_is_told(raw: Path, out: Path) -> None:
    """The next call finds that a Parquet file is gone."""
    write(raw / "a.ndjson", lines(1))
    call(raw, out)
    next(out.rglob("*.parquet")).unlink()
    result = call(raw, out)
    assert result.exit_code == 3
    assert "does not add up" in result.stdout


def test_deep_compares_values(raw: Path, out: Path) -> None:
    """--deep reads every value of every input again."""
    write(raw / "a.ndjson", lines(1))
    assert "every value of 1 input file compared" in call(raw, out, "--deep").stdout


def test_a_dry_run_writes_nothing(raw: Path, out: Path) -> None:
    """--dry-run prints what would be taken."""
    write(raw / "a.ndjson", lines(1))
    result = call(raw, out, "--dry-run")
    assert (result.exit_code, sorted(out.parent.iterdir())) == (0, [raw])
    assert result.stdout.startswith("would take  1 file, 10 bytes\n")
    told, _ = document(raw, out, "--dry-run")
    assert (told["new_bytes"], told["run"], told["backlog"], told["verified"]) == (10, None, None, None)


def test_wrong_usage(raw: Path, out: Path) -> None:
    """Each fault ends with 2, says what was expected, and nothing is written."""
    write(raw / "a.ndjson", lines(1))
    empty = raw.parent / "empty"
    empty.mkdir()
    for arguments, fault in [
        ((raw.parent / "none", out), "does not exist -> expected a file, or a folder"),
        ((empty, out), "holds no files with data"),
        ((f"{raw}/[z-a]", out), "expected a shell pattern"),
        ((raw, out, "--max-wait", "1"), "--max-wait needs --watch"),
        ((raw, raw), "is SRC itself"),
        ((raw, raw / "out"), "overlap"),
        ((raw,), f"expected SRC and DST, as in: compactor compact '{raw}' rows"),
        ((), "Missing argument 'DST'"),
        ((raw / "*.ndjson", raw / "out"), f"in {raw}, the folder of the pattern *.ndjson -> expected a folder outside"),
        ((raw, raw / "a.ndjson" / "x"), "overlap"),
        ((raw, "s3://bucket"), "is not a folder"),
        ((raw, empty / ".." / "my raw" / "a.ndjson"), "overlap"),
        ((empty, raw / "a.ndjson"), "a.ndjson is a file -> expected a folder\n"),
        ((raw, out, "--state", out / "own"), "--state"),
        ((raw, out, "--schema", raw.parent / "none.toml"), "none.toml does not exist -> expected a schema file"),
        ((raw, out, "--config", "x.toml"), "takes no settings file"),
    ]:
        result = call(*arguments)
        assert (result.exit_code, fault in result.stderr) == (2, True), result.stderr
    assert list(out.parent.rglob("*.parquet")) == []


def test_ctrl_c_loses_nothing(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C lets work in flight end; the rest waits, and a second call continues there."""
    for number, day in enumerate(DAYS):
        write(raw / f"{day}.ndjson", lines(number))
    real = CompactProgress.on_result

    def interrupt(progress: Any, result: Result) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        real(progress, result)

    with monkeypatch.context() as patched:
        patched.setattr(CompactProgress, "on_result", interrupt)
        patched.setattr("compactor.cli.ui.signals.os._exit", lambda _code: None)
        result = call(raw, out)
    assert result.exit_code == 130
    assert "run this command again to continue" in result.stderr
    assert 0 < sum(ids(out).values()) < len(DAYS)
    second, code = document(raw, out)
    assert (second["new_files"], second["planned_before"], code) == (0, len(DAYS), 0)
    assert second["resumed_manifests"] > 0
    assert ids(out) == {str(number): 1 for number in range(len(DAYS))}


def test_two_calls_at_once_double_nothing(raw: Path, out: Path) -> None:
    """Two processes on the same folders take every line once between them, and both end well."""
    for number, day in enumerate(DAYS):
        write(raw / f"{day}.ndjson", lines(*range(number * 100, number * 100 + 100)))
    words = [sys.executable, "-m", "compactor", "compact", str(raw), str(out), "--json"]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    answers = [process.communicate(timeout=200) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], answers
    assert ids(out) == {str(number): 1 for number in range(100 * len(DAYS))}
    assert sum(json.loads(answer)["new_files"] for answer, _ in answers) == len(DAYS)


def test_another_source_is_added(raw: Path, out: Path) -> None:
    """A second folder into the same output joins the first; manifests of the first are not refused."""
    other = raw.parent / "other"
    other.mkdir()
    write(raw / "a.ndjson", lines(1))
    write(other / "b.ndjson", lines(2))
    call(raw, out)
    assert call(other, out).exit_code == 0
    assert ids(out) == {"1": 1, "2": 1}


def test_what_was_planned_for_another_source_meanwhile_is_left_to_it(raw: Path, out: Path) -> None:
    """A call that does not know of the other source yet refuses no manifest, and says what it leaves."""
    other = raw.parent / "other"
    other.mkdir()
    write(raw / "a.ndjson", lines(1))
    write(other / "2025-12-01.ndjson", lines(2))
    name = "2025-12-01-00000000000000aa"
    manifest = {
        "version": 1,
        "manifest_id": name,
        "date": "2025-12-01",
        "files": [{"uri": f"{other}/2025-12-01.ndjson"}],
    }
    waiting = Path(f"{out}.compactor/manifests/{name}.json")
    waiting.parent.mkdir(parents=True)
    waiting.write_text(json.dumps(manifest))
    for _ in range(2):
        first = call(raw, out)
        assert (first.exit_code, ids(out)) == (0, {"1": 1}), first.output
        assert "1 manifest of other sources left to their own calls" in first.stderr
    second, code = document(other, out)
    assert (second["planned_before"], second["resumed_manifests"], code) == (1, 1, 0)
    assert ids(out) == {"1": 1, "2": 1}


@pytest.mark.parametrize("words", [("raw", "out\udcff"), ("raw\udcff", "out"), ("raw", "out", "--state", "s\udcff")])
def test_places_are_text(raw: Path, words: tuple[str, ...]) -> None:
    """A place that is not UTF-8 cannot be named in settings, so it is wrong usage, before anything is written."""
    result = CliRunner().invoke(
        command, ["compact", *(str(raw.parent / each) if each[0] != "-" else each for each in words)]
    )
    assert result.exit_code == 2
    assert "in UTF-8" in result.stderr
    assert list(raw.parent.iterdir()) == [raw]


def test_who_may_read_what_is_written(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the owner may read rejects, and a report with rejected lines; rows are for all whom the umask lets."""
    write(raw / "a.ndjson", lines(1) + b'{"id":"%s"}\n' % (b"x" * 2_000))
    monkeypatch.setenv("COMPACTOR_INPUT__MAX_LINE_BYTES", "1000")
    page = raw.parent / "report.html"
    page.write_text("an older one")
    page.chmod(0o644)
    before = os.umask(0o022)
    try:
        assert call(raw, out).exit_code == 0
        monkeypatch.delenv("COMPACTOR_INPUT__MAX_LINE_BYTES")  # so that the line is right when it is redriven
        settings = f"{out}.compactor/compactor.toml"
        for options, mode in (((), 0o600), (("--no-samples",), 0o644)):
            CliRunner().invoke(command, ["--config", settings, "report", "--out", str(page), *options])
            assert page.stat().st_mode & 0o777 == mode
            page.unlink()
        assert CliRunner().invoke(command, ["--config", settings, "redrive", "rejects", "--yes"]).exit_code == 0
    finally:
        os.umask(before)
    modes = {
        kind: {path.stat().st_mode & 0o777 for path in Path(place).rglob("*") if path.is_file()}
        for kind, place in (("rows", out), ("rejects", f"{out}.compactor/state/rejects"))
    }
    redriven = {path.stat().st_mode & 0o777 for path in Path(f"{out}.compactor/state/redriven").rglob("*.ndjson*")}
    assert (modes, redriven) == ({"rows": {0o644}, "rejects": {0o600}}, {0o600})


def test_other_users_can_write_nothing(raw: Path, out: Path) -> None:
    """Also with an umask of 0, of the library: neither the ledger and its databases, nor their folders, nor rows."""
    write(raw / "a.ndjson", lines(1) + b"bad\n")
    before = os.umask(0)
    try:
        assert compact(raw, out).rows == 1
    finally:
        os.umask(before)
    made = [path for place in (out, f"{out}.compactor") for path in (Path(place), *Path(place).rglob("*"))]
    assert {"seen.sqlite", "claims.sqlite", "ledger", "state"} <= {path.name for path in made}
    assert [path for path in made if path.stat().st_mode & 0o002] == []


def test_lines_of_text(raw: Path, out: Path) -> None:
    """`--grok` reads them, and later calls remember the pattern, with the definitions that the user added to it."""
    write(raw / "2025-12-01.log", b"GET 1\n?\nPUT 22\n")
    assert call(raw, out, "--grok", "%{WORD:verb} %{NUMBER:size:int}").exit_code == 0
    kept = out.with_name("rows.compactor") / "compactor.toml"
    settings = tomllib.loads(kept.read_text())["input"]
    assert (settings["format"], settings["grok"]) == ("grok", {"pattern": "%{WORD:verb} %{NUMBER:size:int}"})
    edited = kept.read_text().replace('"%{WORD:verb} %{NUMBER:size:int}"', '"^%{WORD:verb} %{NUMBER:size:int}"')
    kept.write_text(edited.replace('size:int}"', 'size:int}", patterns = { WORD = "[A-Z]+" }'))
    write(raw / "2025-12-02.log", b"PUT 3\nput 4\n")
    assert call(raw, out, "--grok", "^%{WORD:verb} %{NUMBER:size:int}").exit_code == 0
    rows = ds.dataset(out).to_table().select(["verb", "size"]).to_pylist()
    assert sorted(row["size"] for row in rows) == [1, 3, 22]
    assert "patterns" in tomllib.loads(kept.read_text())["input"]["grok"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--grok", "%{NOPE:a}"], "input.grok: there is no pattern NOPE"),
        (["--format", "grok"], "expected input.grok (a table with pattern"),
        (["--format", "csv"], "FORMAT json"),
        (["--types", "long"], "compactor schema suggest --help"),
        (["--format", "json", "--grok", "%{WORD:a}"], 'input.format: "json" -> expected "grok"'),
    ],
)
def test_patterns_that_cannot_be_used(raw: Path, out: Path, arguments: list[str], said: str) -> None:
    """Nothing is written."""
    write(raw / "2025-12-01.log", b"GET 1\n")
    result = call(raw, out, *arguments)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    assert not list(out.rglob("*.parquet"))


def test_types_of_text_are_inferred(raw: Path, out: Path) -> None:
    """From what the pattern captures, whose own types come first; so does `schema suggest`."""
    write(raw / "2025-12-01.log", b"GET 1 2025-12-01\nPUT 22 2025-12-02\n?\n")
    pattern = "%{WORD:verb} %{NUMBER:size:int} %{NOTSPACE:day}"
    suggested = CliRunner().invoke(command, ["schema", "suggest", str(raw), "--grok", pattern])
    columns = {column["name"]: column["type"] for column in tomllib.loads(suggested.stdout)["columns"]}
    assert columns == {"verb": "string", "size": "long", "day": "date"}
    assert call(raw, out, "--grok", pattern, "--types", "infer").exit_code == 0
    assert sorted(ds.dataset(out).to_table()["size"].to_pylist()) == [1, 22]
