"""Decides what of a manifest can be redriven and was not redriven yet. No I/O."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from compactor.core.documents import manifest
from compactor.core.documents.records import NEEDS_OPERATOR, Commit, DeadLetter, FileReport, Redrive
from compactor.ndjson import inspection

Kind = Literal["manifests", "files", "rejects"]

REASONS: dict[Kind, frozenset[str]] = {
    "manifests": frozenset(manifest.REASONS),
    "files": frozenset(str(status) for status in NEEDS_OPERATOR),
    "rejects": frozenset(inspection.REASONS),
}
"""The reasons of dead letters, quarantined files and rejected lines."""

CURABLE = frozenset({"line_too_long", "fields_too_large", "parsers_disagree"})
"""Reasons for which a line is rejected by one setting and not by another: the others follow from its bytes."""

NOTHING_QUARANTINED = "no files were quarantined, or each was redriven before, or a later version was compacted"

THINGS: dict[Kind, str] = {"manifests": "manifest", "files": "file", "rejects": "line"}
"""The unit in which each kind is counted."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to redrive.

    Attributes:
        manifest_ids: The manifests; all if empty.
        settled: By manifest, quarantined files that are left out, because a later version of each has rows.
    """

    kind: Kind
    manifest_ids: tuple[str, ...] = ()
    reason: str | None = None
    date: str | None = None
    settled: Mapping[str, Container[str]] = field(default_factory=dict, compare=False)

    def covers(self, reason: str) -> bool:
        return self.reason is None or self.reason == reason


def left_of(scope: Scope, outcome: Commit | DeadLetter, redrives: Sequence[Redrive]) -> Counter[str]:
    """How many manifests, files or lines can be redriven from a manifest, by reason.

    `redrives` are those of this manifest that are in effect.
    """
    own = [each for each in redrives if each.kind == scope.kind]
    if isinstance(outcome, DeadLetter):
        is_asked = scope.kind == "manifests" and scope.covers(outcome.reason)
        return Counter({outcome.reason: 1} if is_asked and not own else {})
    if scope.kind == "files":
        return Counter(str(report.status) for report in files_left(scope, outcome, redrives))
    if scope.kind == "rejects":
        found = Counter[str]()
        for report in outcome.files:
            found.update(report.rejects)
            found.subtract(report.unkept_rejects)  # their lines are in the input file alone
        for each in own:
            found.subtract(each.counts)
        return Counter({reason: lines for reason, lines in found.items() if lines > 0 and scope.covers(reason)})
    return Counter()


def files_left(scope: Scope, commit: Commit, redrives: Sequence[Redrive]) -> list[FileReport]:
    """The quarantined files of a commit that are not settled, as far as its redrives in effect and the scope say."""
    settled = scope.settled.get(commit.manifest_id, ())
    taken = {file.redriven_uri for each in redrives if each.kind == "files" for file in each.manifest.files}
    return [
        report
        for report in commit.files
        if report.status in NEEDS_OPERATOR
        and report.uri not in taken
        and report.uri not in settled
        and scope.covers(report.status)
    ]


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
