"""Commands load what they need and no more, and name the extra that is not installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compactor.core.errors import ExtraMissing
from compactor.core.extras import DISTRIBUTION, EXTRAS, need
from tests.support.extras import NATIVE
from tests.support.settings_files import write_settings

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "small_day" / "input"

RUN = """
import json, sys
missing, *arguments = sys.argv[1:]
before = set(sys.modules)
for name in filter(None, missing.split(",")):
    sys.modules[name] = None
from compactor.cli.entry import compactor
try:
    compactor.main(arguments, prog_name="compactor")
finally:
    loaded = {name for name, module in sys.modules.items() if module is not None}
    print(json.dumps(sorted(loaded - before)), file=open("modules.json", "w"))
"""

COLLECTED = """
import gc, json
before = sum(each["collections"] for each in gc.get_stats())
from compactor.__main__ import main
try:
    main()
finally:
    count = sum(each["collections"] for each in gc.get_stats()) - before
    print(json.dumps([gc.isenabled(), gc.get_freeze_count(), count]))
"""


def command(folder: Path, *arguments: str, missing: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command in a new process without some packages; `modules.json` in the folder has what it imported."""
    return subprocess.run(
        [sys.executable, "-c", RUN, missing, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def loaded(folder: Path) -> tuple[set[str], set[str]]:
    """The packages of others, and the folders of the package, that the command in this folder imported."""
    modules = json.loads((folder / "modules.json").read_text())
    tops = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    own = {".".join(name.split(".")[1:3]) for name in modules if name.startswith("compactor.")}
    return {name for name in tops if not name.startswith(("_", "compactor"))}, own


def test_what_the_version_loads(tmp_path: Path) -> None:
    """Of all packages only click and orjson, and of the compactor only the command line, errors and the log."""
    assert command(tmp_path, "--version").returncode == 0
    others, own = loaded(tmp_path)
    assert others == {"click", "orjson"}
    assert {name.partition(".")[0] for name in own} == {"__main__", "cli", "core", "telemetry"}


@NATIVE.needed
def test_what_compact_loads(tmp_path: Path) -> None:
    """`compact` loads what the base install brings, no terminal library, and nothing of other commands."""
    done = command(tmp_path, "compact", str(EXAMPLE), "rows", missing=",".join(name for name, _ in EXTRAS.values()))
    assert done.returncode == 0, done.stderr
    others, own = loaded(tmp_path)
    brought = {"annotated_types", "cython_runtime", "pydantic_core", "typing_extensions", "typing_inspection"}
    assert others <= {"blake3", "click", "cramjam", "orjson", "pyarrow", "pydantic", "zlib_ng"} | brought
    assert not {"ops.report", "ops.status", "ops.trace", "adapters.aws", "adapters.spark"} & own
    assert not {name for name in own if name.startswith(("control.", "cost."))}


@NATIVE.needed
def test_no_garbage_is_looked_for_while_modules_load(tmp_path: Path) -> None:
    """It took a fifth of a short call. Python looks for it again as soon as the command begins."""
    words = [sys.executable, "-c", COLLECTED, "compact", str(EXAMPLE), "rows"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    is_enabled, frozen, collections = json.loads(done.stdout.splitlines()[-1])
    assert (is_enabled, frozen > 50_000, collections < 30) == (True, True, True), done.stdout


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("aws", ["compact", "s3://bucket/raw", "rows"]),
        pytest.param("aws", ["--config", "s3://bucket/compactor.toml", "status"], marks=pytest.mark.full),
        ("spark", ["compact", str(EXAMPLE), "rows", "--engine", "spark"]),
        ("demo", ["demo"]),
    ],
    ids=("s3", "settings in s3", "spark", "demo"),
)
def test_an_extra_that_is_missing(extra: str, arguments: list[str], tmp_path: Path) -> None:
    """A command that needs an extra that is not installed ends with 2, and one line says how to install it."""
    package, purpose = EXTRAS[extra]  # type: ignore[index]
    done = command(tmp_path, *arguments, missing=package)
    assert (done.returncode, done.stdout) == (2, "")
    added = f"{sys.executable} -m pip install '{DISTRIBUTION}[{extra}]'"
    assert done.stderr == f"compactor: {purpose}: {package} is not installed -> {added}\n"
    assert {path.name for path in tmp_path.iterdir()} == {"modules.json"}


def test_the_page_of_the_report_needs_an_extra(tmp_path: Path) -> None:
    """`report` says so before it reads the ledger; its figures as JSON need none."""
    arguments = ["--config", str(write_settings(tmp_path)), "report"]
    done = command(tmp_path, *arguments, missing="pygal")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"pygal is not installed -> {sys.executable} -m pip install '{DISTRIBUTION}[report]'\n")
    assert command(tmp_path, *arguments, "--json", missing="pygal,jinja2,markupsafe").returncode == 0


def test_an_extra_that_is_installed() -> None:
    """Nothing is said of what is there."""
    for extra in EXTRAS:
        need(extra)


def test_a_missing_extra_is_an_error_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is one of the tree: a job stops and says so, and holds it against no manifest."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ExtraMissing, match="boto3 is not installed"):
        need("aws")
