"""What the documents say is so: commands run, names exist."""

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from compactor.core.crash_points import (
    ChangeCrashPoint,
    CrashPoint,
    PlanCrashPoint,
    RedriveCrashPoint,
    RotationCrashPoint,
)
from compactor.demo.events import make_event_lines
from tests.support.document_commands import check_command
from tests.support.document_lake import ENVIRONMENT, make_lake
from tests.support.documents import (
    EXAMPLES,
    TAGS,
    Block,
    anchors,
    blocks,
    blocks_of,
    check_printed,
    documents,
    links,
    open_database,
    run,
)
from tests.support.extras import NATIVE
from tests.support.machines import path_with, user_environment, user_variables

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
OF_THE_NATIVE_ENGINE = {"sources"}
"""Documents whose examples need it."""
DOCUMENTS = [*documents(), *ROOT.glob("deploy/*.yaml")]


def name_of(found: object) -> str:
    """What a test about a document is called."""
    return found.relative_to(ROOT).as_posix() if isinstance(found, Path) else str(found)


def test_every_make_target_of_the_documents_exists() -> None:
    """`make X` in a document is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for path in DOCUMENTS for name in re.findall(r"\bmake ([a-z-]+)`", path.read_text())}
    shells = [block.text for path in documents() for block in blocks_of(path, "sh", "sh clone", "sh aws")]
    named |= {name for text in shells for name in re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)}
    assert {"demo", "test", "install"} <= named <= targets


def test_every_file_that_the_documents_name_exists() -> None:
    """Paths in back-quotes that look like files of the repository are there."""
    for path in DOCUMENTS:
        for name in re.findall(r"`((?:tests|config|compactor|deploy|lambdas|bench|docs)/[\w./*]+)`", path.read_text()):
            assert list(ROOT.glob(name)), f"{path.name} names {name}"


def test_the_internals_tell_every_step() -> None:
    """Each step of a life, an expiry, building, a redrive and a rotation has one row of its own."""
    text = (ROOT / "docs" / "reference-internals.md").read_text()
    tables = [section for section in re.split(r"^##+ ", text, flags=re.MULTILINE) if "\n| step |" in section]
    assert [re.findall(r"^\| (?:`|.*\(`)(\w+)`\)? \|", table, re.MULTILINE) for table in tables] == [
        list(CrashPoint),
        list(ChangeCrashPoint),
        list(PlanCrashPoint),
        list(RedriveCrashPoint),
        list(RotationCrashPoint),
    ]


def test_every_page_is_in_the_index() -> None:
    """The index of the documents names each of them."""
    index = ROOT / "docs" / "README.md"
    assert {path.name for path in index.parent.glob("*.md")} - {index.name} <= set(links(index))


def test_the_glossary_is_short() -> None:
    """At most twenty words in the order of the alphabet, each in one sentence."""
    section = (ROOT / "docs" / "start.md").read_text().partition("\n## Words\n")[2]
    rows = re.findall(r"^\| ([a-z -]+) \| (.+) \|$", section, re.MULTILINE)
    words = dict(rows[1:])
    assert len(rows) - 1 == len(words) <= 20
    assert list(words) == sorted(words)
    assert [word for word, meaning in words.items() if not re.fullmatch(r"[A-Z][^.]*( `[^`]+`[^.]*)*\.", meaning)] == []


def test_the_readme_is_short() -> None:
    """It has 900 words at most, and the two commands of a fresh machine under a heading of their own."""
    text = README.read_text()
    assert len(text.split()) <= 900
    section = text.partition("\n## On a fresh machine\n")[2].partition("\n## ")[0]
    assert "```sh\nmake demo\nmake test\n```" in section


def test_every_module_of_the_layer_map_exists() -> None:
    """The layer map names modules of the package, and all of them."""
    table = (ROOT / "CONTRIBUTING.md").read_text().split("## How to add")[0]
    package = ROOT / "compactor"
    named = {name for row in table.splitlines() if row.startswith("| ") for name in re.findall(r"`([a-z0-9_*]+)`", row)}
    modules = {path.stem for path in package.glob("*.py") if not path.stem.startswith("__")}
    for module in modules:
        assert any(re.fullmatch(name.replace("*", ".*"), module) for name in named), f"{module} is not on the map"


def test_every_example_is_of_a_kind_that_is_tried() -> None:
    """Each fenced block has a tag that says how it is checked; data can be read as what it says it is."""
    for block in [block for path in documents() for block in blocks(path)]:
        assert block.tag in TAGS, f"{block.where}: {block.tag}"
        if block.tag == "toml":
            tomllib.loads(block.text)
        elif block.tag == "json":
            json.loads(block.text)


def test_links_lead_somewhere() -> None:
    """A link within the repository leads to a file, and to a heading of it if it names one."""
    for path in documents():
        for link in links(path):
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            assert target.exists(), f"{name_of(path)} links to {link}"
            assert not anchor or anchor in anchors(target), f"{name_of(path)} links to {link}"


def test_commands_that_need_an_account_exist() -> None:
    """What is not run is at least there: target, command or operation, and each of its options."""
    for block in [block for path in documents() for block in blocks_of(path, "sh aws")]:
        for line in block.lines:
            check_command(line)


def test_a_command_that_is_not_there_is_noticed() -> None:
    """The check itself finds wrong targets, commands, operations and options."""
    for line in ("make nothing", "compactor nothing", "compactor plan --nothing s3://b", "aws sqs nothing", "rm -r /"):
        with pytest.raises(Exception, match=r"nothing|rm"):
            check_command(line)
    with pytest.raises(AssertionError, match="--nothing"):
        check_command("aws sqs receive-message --nothing x")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake that the examples of all documents are about."""
    folder = tmp_path_factory.mktemp("lake")
    make_lake(folder)
    return folder


@pytest.mark.parametrize(
    "path", [each for each in documents() if each != README and blocks_of(each, *EXAMPLES)], ids=name_of
)
def test_examples_run(path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands, Python and SQL of a document work on a real lake, in their order, and print what it says."""
    if path.stem in OF_THE_NATIVE_ENGINE:
        NATIVE.need()
    monkeypatch.chdir(lake)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    namespace: dict[str, object] = {}
    with open_database() as database:
        for block in blocks_of(path, *EXAMPLES):
            check_printed(block, run(block, namespace, database))


def test_an_example_that_prints_something_else_is_noticed(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of what is printed finds what differs, and takes `...` for anything."""
    monkeypatch.chdir(lake)
    with open_database() as database:
        right, wrong = (Block("here", "python", "print(1, 2)", says) for says in ("1 ...\n", "1 3\n"))
        check_printed(right, run(right, {}, database))
        with pytest.raises(AssertionError, match="here prints"):
            check_printed(wrong, run(wrong, {}, database))
        with pytest.raises(AssertionError, match="finds no rows"):
            run(Block("here", "sql athena", "SELECT * FROM events WHERE false"), {}, database)
        with pytest.raises(AssertionError, match="exit code 2"):
            run(Block("here", "sh", "compactor nothing"), {}, database)


@dataclass(frozen=True)
class Checkout:
    """A folder like a fresh clone after `make install`, with some events of the reader's own."""

    folder: Path
    engine: str
    path: Path

    def shell(self, lines: list[str]) -> str:
        """Run lines of a document, but for those that `make` runs; returns what they print."""
        script = "set -e\n" + "\n".join(line for line in lines if not line.startswith("make "))
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=user_variables(self.folder, self.path),
            capture_output=True,
            text=True,
            check=False,
            timeout=360,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(
    params=[
        pytest.param("native", marks=NATIVE.needed),
        pytest.param("spark", marks=pytest.mark.full),
        pytest.param("both", marks=[NATIVE.needed, pytest.mark.full]),
    ]
)
def checkout(request: pytest.FixtureRequest, tmp_path: Path) -> Checkout:
    """One after `make install` on a machine with cargo, or with Java alone, or after `make dev` on one with both."""
    engine: str = request.param
    for name in ("config", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    programs = Path(sys.executable).parent
    if engine != "both":
        lock = "install" if engine == "native" else "install-spark"
        programs = user_environment(tmp_path / "environment", lock=lock, native=engine == "native")
    (tmp_path / ".venv").symlink_to(programs.parent)
    events = tmp_path / "my-events"
    events.mkdir()
    (events / "2025-12-21-mine.ndjson").write_bytes(make_event_lines(1, 200))
    java = () if engine == "native" else ("java",)
    return Checkout(tmp_path, engine, path_with(tmp_path / "path", *java))


@pytest.mark.timeout(400)
def test_the_commands_in_a_clone_run(checkout: Checkout) -> None:
    """The first screen, the walk to a job of one's own, and what an operator asks after it, as written."""
    first, *others = [*blocks_of(README, "sh"), *blocks_of(ROOT / "docs" / "start.md", "sh clone")]
    printed = checkout.shell(first.lines)
    if checkout.engine == "spark":
        by_native = re.compile(r"1 file, [0-9.]+ kB\nengine    native: .*\n")
        by_spark, changes = by_native.subn("1 file, ... kB\nengine    spark: ...\n", first.printed or "")
        assert changes == 1
        first = replace(first, printed=by_spark)
    check_printed(first, printed)
    told = checkout.shell([line for block in others for line in block.lines])
    assert "none" in told
    assert list((checkout.folder / "data" / "output").rglob("*.snappy.parquet"))
    assert (checkout.folder / "data" / "report.html").exists()
