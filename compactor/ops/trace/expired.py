"""What of a manifest expired, or was erased on request, as a trace says it."""

from compactor.core.documents.expired import Part
from compactor.core.documents.records import Commit
from compactor.core.text.formatting import count
from compactor.ledger.history.expired_log import ExpiredParts
from compactor.ledger.state import State

_NAMES: dict[Part, str] = {
    "rows": "rows",
    "rejects": "rejects",
    "archive": "archived manifest",
    "redriven": "redriven lines",
}


def expired_parts(state: State, commit: Commit) -> dict[Part, str]:
    """The parts of a manifest that expired, each in words, such as `rows expired on 2026-02-01 under ...`."""
    parts: list[Part] = ["archive"]
    parts += ["rows"] if commit.outputs else []
    parts += ["rejects"] if commit.rejects else []
    parts += ["redriven"] if commit.rejects_of else []
    log = ExpiredParts(state)
    found = {part: log.of(part, commit.key, commit.generation) for part in parts}
    return {part: f"{_NAMES[part]} {record.words}" for part, record in found.items() if record is not None}


def erased_words(commit: Commit) -> str:
    """What was erased of a manifest on request; empty if nothing was. Which file a row was from need not be known."""
    if commit.erased is None:
        return ""
    lines = sum(file.erased_rejects for file in commit.files)
    what = f"{count(commit.erased.rows, 'row')} and {count(lines, 'rejected line')}"
    return f"{what} of its manifest, on request: {', '.join(commit.erased.erasures)}"
