"""What the documents say is so: commands run, names exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compactor.demo.events import make_event_lines

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/*.md"), *ROOT.glob("deploy/*.yaml")]
)


def shell_blocks(text: str) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


def test_every_make_target_of_the_documents_exists() -> None:
    """`make X` in a document is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for path in DOCUMENTS for name in re.findall(r"\bmake ([a-z-]+)`", path.read_text())}
    named |= {name for block in shell_blocks(README) for name in re.findall(r"^make ([a-z-]+)", block, re.MULTILINE)}
    assert {"demo", "test", "install"} <= named <= targets


def test_every_file_that_the_documents_name_exists() -> None:
    """Paths in back-quotes that look like files of the repository are there."""
    for path in DOCUMENTS:
        for name in re.findall(r"`((?:tests|config|compactor|deploy|lambdas|bench|docs)/[\w./*]+)`", path.read_text()):
            assert list(ROOT.glob(name)), f"{path.name} names {name}"


def test_every_module_of_the_layer_map_exists() -> None:
    """The layer map names modules of the package, and all of them."""
    table = (ROOT / "CONTRIBUTING.md").read_text().split("## How to add")[0]
    package = ROOT / "compactor"
    named = {name for row in table.splitlines() if row.startswith("| ") for name in re.findall(r"`([a-z0-9_*]+)`", row)}
    modules = {path.stem for path in package.glob("*.py") if not path.stem.startswith("__")}
    for module in modules:
        assert any(re.fullmatch(name.replace("*", ".*"), module) for name in named), f"{module} is not on the map"


@pytest.mark.timeout(400)
def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    """The walk through one's own files, and what an operator asks after it, as written, in an empty folder."""
    (tmp_path / "config").symlink_to(ROOT / "config")
    events = tmp_path / "my-events"
    events.mkdir()
    (events / "2025-12-21-mine.ndjson").write_bytes(make_event_lines(1, 200))
    lines = [line for block in shell_blocks(README) for line in block.splitlines()]
    script = "set -e\n" + "\n".join(line for line in lines if not line.startswith("make "))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=360
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "none" in done.stdout
    assert list((tmp_path / "data" / "local" / "output").rglob("*.snappy.parquet"))
