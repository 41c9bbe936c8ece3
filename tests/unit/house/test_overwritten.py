"""Records are created once: the few places that overwrite an object are on a list."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

OVERWRITES = {
    "control/gathering.py": "two records of the control plane: each says anew what it found",
    "control/notices.py": "a copy of the record with other alarms",
    "control/scaling.py": "how many shards are wanted: a later check decides anew",
    "engines/columns_file.py": "what the registry adds up to: a cache, which keeps columns that no version has",
    "engines/rows_place.py": "files of rows of its own attempt, which are no records",
    "job/publication.py": "the reason of a dead letter, and a copy of the recorded manifest",
    "ledger/housekeeping.py": "when something last ended: one time",
    "job/attempts.py": "a sample of its own",
    "ledger/history/closed_dates.py": "what the log of closed dates adds up to: a cache",
    "ops/erase/eraser.py": "what its own erasure did: another process can only have guessed it from commits",
    "ledger/landing/progress.py": "how far jobs are with a topic or stream: written anew after each landing",
    "ledger/heartbeat.py": "a run's own heartbeat, and a request to stop without content",
    "ledger/landing/chains.py": "a cache of where listings may begin, and until when a planner saw no further record",
    "ledger/accounts/replaced.py": "the latest version of a replaced file: each plan says anew what it found",
    "ledger/ledger.py": "an open marker without content, a summary and a verified commit of its own work",
    "ledger/table/batches.py": "up to where the batches of the table are finished: a cache",
    "ledger/table/progress.py": "how far a job is with the table: a copy of its own record, said anew each time",
    "ops/canary.py": "a file of its own",
    "ops/doctor/rights.py": "an object for the trial of a place, which no reader takes for data",
    "ops/table/maintainer.py": "names of files to remove: those that are known and those of this erasure",
    "api/folder_run.py": "a schema file, which is no record",
    "wiring/folder.py": "settings, which are no record",
}
"""The modules that overwrite objects, and why nothing is lost by it. All else is created once."""


def test_all_that_is_overwritten_is_known() -> None:
    """A further place that overwrites has to say why that is safe."""
    found = set()
    for path in (ROOT / "compactor").rglob("*.py"):
        place = str(path.relative_to(ROOT / "compactor"))
        if place.startswith(("adapters/", "demo/")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            is_put = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "put"
            if is_put and "store" in ast.unparse(node.func.value):  # type: ignore[attr-defined]
                found.add(place)
    assert found == OVERWRITES.keys()
