"""The kinds of what can be redriven, their reasons and units, and why a manifest has nothing of a kind. No I/O."""

from compactor.core.documents import manifest
from compactor.core.documents.records import NEEDS_OPERATOR, Commit, DeadLetter
from compactor.ledger.accounts.account import Kind
from compactor.ledger.accounts.reading import Scope
from compactor.ndjson import inspection

REASONS: dict[Kind, frozenset[str]] = {
    "manifests": frozenset(manifest.REASONS),
    "files": frozenset(str(status) for status in NEEDS_OPERATOR),
    "rejects": frozenset(inspection.REASONS),
}
"""The reasons of dead letters, quarantined files and rejected lines."""

CURABLE = frozenset({"line_too_long", "parsers_disagree"})
"""Reasons for which a line is rejected by one setting and not by another: the others follow from its bytes."""

NOTHING_QUARANTINED = "no files were quarantined, or each was redriven before, or a later version was compacted"

THINGS: dict[Kind, str] = {"manifests": "manifest", "files": "file", "rejects": "line"}
"""The unit in which each kind is counted."""


def nothing_because(scope: Scope, outcome: Commit | DeadLetter) -> str:
    """Why a manifest that the scope names has nothing to redrive."""
    asked = f" for {scope.reason}" if scope.reason else ""
    if scope.kind == "manifests":
        if isinstance(outcome, DeadLetter):
            return f"it was redriven before, or has another reason than {scope.reason or outcome.reason}"
        return "it is not a dead letter: it was committed"
    if isinstance(outcome, DeadLetter):
        return f"it is a dead letter ({outcome.reason}); expected `redrive manifests`"
    if scope.kind == "files":
        return NOTHING_QUARANTINED.replace("quarantined", f"quarantined{asked}", 1)
    return f"no lines were rejected{asked}, or all of them were redriven before"
