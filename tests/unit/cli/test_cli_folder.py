"""Promises of `compactor compact` about what a folder holds: names, links, forbidden folders, and files that change."""

import itertools
import json
import os
import re
import shutil
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

from compactor import verify
from compactor.adapters.local import store as local_store
from compactor.api.folder_run import FolderRun
from compactor.cli.entry import compactor as command
from compactor.core.errors import AccessError
from tests.support import extras
from tests.support.compacting import call

pytestmark = extras.NATIVE.needed

HOUR_AGO = time.time() - 3600


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "rows"


def write(path: Path, *ids: int, ago: float = 0) -> Path:
    """A file with a line for each id, from an hour ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(b'{"id": %d}\n' % each for each in ids))
    os.utime(path, (HOUR_AGO - ago,) * 2)
    return path


def ids(out: Path) -> Counter[int]:
    return Counter(int(each) for each in ds.dataset(out, format="parquet").to_table().column("id").to_pylist())


def verified(out: Path) -> int:
    settings = f"{out}.compactor/compactor.toml"
    return CliRunner().invoke(command, ["--config", settings, "verify", "--deep"]).exit_code


def test_a_file_that_grows_after_it_was_renamed(raw: Path, out: Path) -> None:
    """Only its new lines are taken. Replaced, it is quarantined at each call, as under its old name."""
    write(raw / "a.ndjson", 1)
    assert call(raw, out).exit_code == 0
    (raw / "a.ndjson").rename(raw / "b.ndjson")
    assert call(raw, out).exit_code == 0
    write(raw / "b.ndjson", 1, 2, ago=-60)
    for _ in range(2):
        assert (call(raw, out).exit_code, ids(out), verified(out)) == (0, Counter([1, 2]), 0)
    write(raw / "b.ndjson", 1, 3, 4, ago=-120)
    result = call(raw, out)
    assert (result.exit_code, "b.ndjson (replaced: manifest " in result.stdout, ids(out)) == (3, True, Counter([1, 2]))
    assert call(raw, out, "--on-replaced", "append").exit_code == 0
    assert (ids(out), call(raw, out).exit_code) == (Counter([1, 1, 2, 3, 4]), 0)


def test_ten_calls(raw: Path, out: Path) -> None:
    """Ten calls for one folder, with every change between them: the rows are those of the rules, and all adds up."""
    for name, line in (("a.ndjson", 1), ("b.ndjson", 2), ("2026-01-02-c.ndjson", 3)):
        write(raw / name, line)
    expected = Counter({1: 1, 2: 1, 3: 1})

    def step(code: int, *words: str) -> str:
        result = call(raw, out, *words)
        assert (result.exit_code, ids(out), verified(out)) == (code, expected, code), result.output
        return result.stdout

    step(0)
    shutil.copy2(raw / "a.ndjson", raw.parent / "backup")
    (raw.parent / "backup").rename(raw / "a.ndjson")
    step(0)
    write(raw / "b.ndjson", 2, ago=60)
    assert "3 files taken before (1 touched)" in step(0)
    (raw / "a.ndjson").rename(raw / "a-1.ndjson")
    assert "(1 touched, 1 renamed)" in step(0)
    write(raw / "a.ndjson", 4, ago=-5)
    expected[4] = 1
    step(0)
    write(raw / "2026-01-02-c.ndjson", 5, 3, ago=-60)
    step(3)
    expected[5] = 1
    assert "rebuilt   1 manifest with 2 rows, for 1 replaced file" in step(0, "--on-replaced", "rebuild")
    write(raw / "2026-01-02-c.ndjson", 3)
    step(3)  # the rows of this version are gone
    write(raw / "2026-01-02-c.ndjson", 5, 3, 9, ago=-120)
    expected[9] = 1
    assert "1 file, 10 bytes (1 grown: only their new lines)" in step(0)
    write(raw / "b.ndjson", 6, 7, ago=-60)
    expected += Counter({6: 1, 7: 1})
    step(0, "--on-replaced", "append")
    (raw / "b.ndjson").unlink()
    write(raw / "d.ndjson", 8)
    expected[8] = 1
    step(0)
    step(0)


def test_files_and_patterns(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRC is a folder, a file, a pattern, or several of them; a file may be beside DST."""
    for name, line in (("x/a.ndjson", 1), ("x/b.log", 2), ("y/c.ndjson", 3), ("d.ndjson", 4), ("_e.ndjson", 5)):
        write(raw / name, line)
    monkeypatch.chdir(raw)
    assert call("d.ndjson", "_e.ndjson", "rows").exit_code == 0
    assert ids(raw / "rows") == {4: 1, 5: 1}
    assert call("x", "*/*.ndjson", "out").exit_code == 2
    shutil.rmtree(raw / "rows")
    shutil.rmtree(raw / "rows.compactor")
    assert call("?/*.ndjson", out).exit_code == 0
    assert ids(out) == {1: 1, 3: 1}
    result = call(raw / "x", raw / "x" / "a.ndjson", f"{raw}/[y]", out, "--json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["new_files"], ids(out)) == (0, 1, {1: 1, 2: 1, 3: 1})
    assert told["sources"] == [str(raw / "x"), f"{raw}/[y]", str(raw / "x" / "a.ndjson")]


def test_hidden_files(raw: Path, out: Path) -> None:
    """They are skipped and counted, and --hidden takes them, apart from the markers of jobs."""
    for name, line in (("a.ndjson", 1), (".DS_Store", 2), (".git/HEAD", 3), ("_tmp/b.ndjson", 4), ("_SUCCESS", 5)):
        write(raw / name, line)
    result = call(raw, out)
    assert (result.exit_code, ids(out)) == (0, {1: 1})
    assert "skipped   3 objects, such as .DS_Store (hidden; --hidden includes them)" in result.stdout
    assert "_SUCCESS (Spark marker)" in result.stdout
    assert call(raw, out, "--hidden").exit_code == 0
    assert ids(out) == {1: 1, 2: 1, 3: 1, 4: 1}


def test_a_forbidden_folder(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one quarantined entry, and the rest goes on. A hidden one is only skipped."""
    monkeypatch.setattr("compactor.adapters.local.store.os.scandir", denying("private", ".cache"))
    write(raw / "a.ndjson", 1)
    write(raw / "private/deep/b.ndjson", 2)
    write(raw / ".cache/c.ndjson", 3)
    result = call(raw, out)
    assert (result.exit_code, ids(out)) == (3, {1: 1})
    assert f"quarantined  {raw}/private/ (forbidden)" in result.stdout
    assert f"cannot read {raw}/private/: permission denied" in result.stdout
    assert ".cache/ (hidden" in result.stdout
    assert call(raw / "private", out).exit_code == 1


def test_a_forbidden_file_counts_once(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is quarantined and its neighbours are rows. With other rights, it is a file taken before."""
    write(raw / "a.ndjson", 1)
    write(raw / "b.ndjson", 2)
    read = local_store.LocalStore._read

    def refusing(store: Any, uri: str, *place: Any) -> bytes:
        if uri.endswith("/a.ndjson"):
            raise AccessError(f"cannot read {uri}: permission denied")
        return read(store, uri, *place)

    with monkeypatch.context() as patched:
        patched.setattr(local_store.LocalStore, "_read", refusing)
        result = call(raw, out)
    assert (result.exit_code, ids(out)) == (3, {2: 1})
    assert f"quarantined  {raw}/a.ndjson (permission denied)" in result.stdout
    (raw / "a.ndjson").chmod(0o600)
    again = call(raw, out)
    assert (again.exit_code, "nothing; 2 files taken before" in again.stdout) == (3, True), again.stdout


def test_what_to_do_after_a_call(raw: Path, out: Path) -> None:
    """Rejected lines are to be looked at, lost output is to be rebuilt, and each command can be copied."""
    (raw / "a.ndjson").write_text('{"id": 1}\n{"id": 2}\nno\n')
    os.utime(raw / "a.ndjson", (HOUR_AGO,) * 2)
    assert f"more        compactor status {out}   (or: verify, rejects, report)" in call(raw, out).stdout
    (raw / "b.ndjson").write_text("no\n" * 9)
    os.utime(raw / "b.ndjson", (HOUR_AGO,) * 2)
    assert f"\nsee why     compactor rejects {out}\n" in call(raw, out).stdout
    shutil.rmtree(out)
    rebuild = f"next        compactor rebuild {out} regenerates lost or damaged files"
    assert rebuild in call(raw, out).stdout.splitlines()
    traced = CliRunner().invoke(command, ["trace", "--in", str(out), str(raw / "b.ndjson")])
    assert traced.stdout.splitlines()[-1].split()[1:] == ["compactor", "rejects", str(out), "--file", f"{raw}/b.ndjson"]
    assert CliRunner().invoke(command, traced.stdout.split()[-4:]).exit_code == 0
    assert CliRunner().invoke(command, ["rebuild", str(out)]).exit_code == 0
    assert ids(out) == {1: 1, 2: 1}


def test_a_file_in_place_of_a_folder(raw: Path, out: Path) -> None:
    """It is named once."""
    write(raw / "a.ndjson", 1)
    out.write_text("")
    result = call(raw, out)
    assert (result.exit_code, result.stderr) == (2, f"compactor: DST: {out} is a file -> expected a folder\n")


def denying(*names: str) -> Any:
    real = os.scandir

    def scandir(path: Any) -> Any:
        if isinstance(path, str) and Path(path).name in names:
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    return scandir


@pytest.mark.parametrize("is_restored", [False, True])
def test_an_append_between_plan_and_read(
    raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch, is_restored: bool
) -> None:
    """The call names the file and does not end with 0; the next one has its lines, also if it is as it was listed."""
    write(raw / "a.ndjson", 1)
    write(raw / "b.ndjson", 2)
    real = FolderRun._work

    def append(*arguments: Any) -> Any:
        write(raw / "a.ndjson", 1, 3, ago=60)
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(FolderRun, "_work", append)
        result = call(raw, out)
    assert (result.exit_code, ids(out)) == (3, {2: 1})
    assert f"quarantined  {raw}/a.ndjson (changed)" in result.stdout
    assert re.search(
        r"after it was listed: found 20 bytes written \S+ \S+ UTC, expected 10 bytes written ", result.stdout
    )
    if is_restored:
        write(raw / "a.ndjson", 1)
    assert call(raw, out).exit_code == 0
    assert ids(out) == ({1: 1, 2: 1} if is_restored else {1: 1, 2: 1, 3: 1})
    assert verified(out) == 0


def test_unsettled_files_are_named(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is written again and again is not taken, and the call says so; one that is appended to is."""
    write(raw / "a.ndjson", 1)
    versions = itertools.count(2)

    def write_on(_seconds: float = 0) -> None:
        write(raw / "b.ndjson", next(versions), ago=HOUR_AGO - time.time())

    clock = SimpleNamespace(sleep=write_on, monotonic=time.monotonic)
    monkeypatch.setattr("compactor.api.folder_run.time", clock)
    write_on()
    result = call(raw, out)
    assert (result.exit_code, ids(out)) == (3, {1: 1})
    assert f"not taken  {raw}/b.ndjson (unsettled)" in result.stdout
    versions = itertools.repeat(4)
    write_on()
    result = call(raw, out)
    assert (result.exit_code, ids(out)) == (0, {1: 1, 4: 1})
    assert "1 still being written" in result.stdout


def test_other_bytes_behind_the_same_time(raw: Path, out: Path) -> None:
    """A file that was rewritten with its length and its time kept is found by its status, and named."""
    write(raw / "a.ndjson", 1)
    call(raw, out)
    write(raw / "a.ndjson", 2)
    result = call(raw, out)
    assert (result.exit_code, ids(out)) == (3, {1: 1})
    assert "UTC with different content" in result.stdout
    [manifest_id] = {each.manifest_id for each in verify(out).open_files}
    for chosen in ({"manifest_id": manifest_id}, {"date": manifest_id[:10]}):
        assert [each.status for each in verify(out, **chosen).open_files] == ["replaced"]
    assert call(raw, out, "--on-replaced", "rebuild").exit_code == 0
    assert ids(out) == {2: 1}


def killed_after_planning(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that plans, and dies before it works."""
    with monkeypatch.context() as patched:
        patched.setattr(FolderRun, "_work", lambda *_: (_ for _ in ()).throw(SystemExit(9)))
        call(raw, out)


def test_a_file_renamed_after_a_kill(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dead call has planned is done before the folder is planned again, so that no line is taken twice."""
    write(raw / "a.ndjson", 1)
    call(raw, out)
    write(raw / "b.ndjson", 2)
    killed_after_planning(raw, out, monkeypatch)
    (raw / "b.ndjson").rename(raw / "c.ndjson")
    call(raw, out)
    assert ids(out) == {1: 1, 2: 1}


def test_ctrl_c_before_new_files_were_planned(raw: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is stopped while it does the work of an earlier one does not end with 0."""
    write(raw / "a.ndjson", 1)
    killed_after_planning(raw, out, monkeypatch)
    write(raw / "b.ndjson", 2)
    real = FolderRun._work
    with monkeypatch.context() as patched:
        patched.setattr(FolderRun, "_work", lambda *arguments: (real(*arguments)[0], True))
        result = call(raw, out)
    assert (result.exit_code, ids(out)) == (130, {1: 1})
    assert call(raw, out).exit_code == 0
    assert ids(out) == {1: 1, 2: 1}


def test_the_trace_of_a_renamed_file(raw: Path, out: Path) -> None:
    """It shows the rows under the earlier name, as `compact` knows them. A copy is to be planned."""
    write(raw / "a.ndjson", 1)
    assert call(raw, out).exit_code == 0
    shutil.copy2(raw / "a.ndjson", raw / "copy.ndjson")
    traced = lambda name: CliRunner().invoke(command, ["trace", "--in", str(out), str(raw / name)]).output  # noqa: E731
    assert f"to plan it: compactor compact {raw} {out}" in traced("copy.ndjson")
    (raw / "copy.ndjson").unlink()
    (raw / "a.ndjson").rename(raw / "b.ndjson")
    assert "(1 renamed)" in call(raw, out).stdout
    for name in ("b.ndjson", "c.ndjson"):
        found = traced(name)
        assert f"renamed or rotated: it was {raw}/a.ndjson, and its rows keep that name" in found
        assert re.search(r"^lines +1 = 1 row ", found, re.MULTILINE)
        (raw / "b.ndjson").unlink(missing_ok=True)
        write(raw / "a.ndjson", 2, ago=-60)
        write(raw / "c.ndjson", 1, ago=-30)  # copied, and truncated
        assert (call(raw, out).exit_code, ids(out)) == (0, Counter([1, 2]))
    write(raw / "a.ndjson", 2, 3, ago=-90)
    assert (call(raw, out).exit_code, ids(out)) == (0, Counter([1, 2, 3]))
    for name in ("a.ndjson", "moved.ndjson"):
        found = traced(name)
        assert "it has grown: the figures are of its lines from 2 on" in found
        assert re.search(r"^lines before +1 to 1 in manifest ", found, re.MULTILINE)
        (raw / "a.ndjson").rename(raw / "moved.ndjson") if name == "a.ndjson" else None
