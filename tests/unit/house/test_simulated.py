"""What is simulated reads no time, starts no thread and draws no chance but by what the simulation replaces."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.importing import PACKAGE, STAND_INS, SUBSTITUTES

PROJECT = Path(__file__).resolve().parents[3]
ROOT = PROJECT / PACKAGE
SIMULATED = (
    "control",
    "core",
    "engines",
    "job",
    "ledger",
    "sources",
    "ndjson",
    "ops",
    "schema",
    "settings",
    "telemetry",
)
SOURCES = [
    *(path for folder in SIMULATED for path in sorted((ROOT / folder).rglob("*.py"))),
    *(PROJECT / f"{name.replace('.', '/')}.py" for name in STAND_INS),
    ROOT / "adapters" / "listed_manifests.py",
    *(ROOT / "wiring" / f"{name}.py" for name in ("app", "planning", "streaming")),
]
UNSEEN = {"_thread", "asyncio", "multiprocessing", "numpy.random", "queue", "sched", "select", "selectors"}
CLOCKS = {"now", "today", "utcnow"}


def violations(code: str) -> list[str]:
    """What a module uses that is real also in a simulation."""
    return [f"line {line}: {what}" for line, what in _used(ast.parse(code))]


def _used(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, each.name) for each in node.names if each.name in UNSEEN)
            yield from ((node.lineno, f"{each.name} as {each.asname}") for each in node.names if _is_hidden(each))
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [each.name for each in node.names]
            known = vars(SUBSTITUTES[module]) if module in SUBSTITUTES else names
            yield from ((node.lineno, f"{module}.{name}") for name in names if module in UNSEEN or name not in known)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = node.value.id
            is_unseen = owner in SUBSTITUTES and node.attr not in vars(SUBSTITUTES[owner])
            is_clock = owner in {"datetime", "date"} and node.attr in CLOCKS
            if is_unseen or is_clock or (owner, node.attr) == ("os", "urandom"):
                yield node.lineno, f"{owner}.{node.attr}"


def _is_hidden(name: ast.alias) -> bool:
    return name.name in SUBSTITUTES and name.asname is not None


def test_no_real_time_threads_or_chance() -> None:
    found = {path.relative_to(PROJECT).as_posix(): violations(path.read_text()) for path in SOURCES}
    assert {path: lines for path, lines in found.items() if lines} == {}
    assert len(found) > len(SIMULATED)


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.perf_counter()",
        "from datetime import datetime\ndatetime.now()",
        "from threading import Semaphore",
        "import random\nrandom.choice([1])",
        "import time as clock",
        "import queue",
        "from concurrent.futures import ProcessPoolExecutor",
        "import os\nos.urandom(3)",
    ],
)
def test_what_is_real_is_found(code: str) -> None:
    assert violations(code)


def test_what_is_replaced_may_be_used() -> None:
    assert violations("import time\nfrom threading import Lock\ntime.sleep(1)\nLock()") == []
