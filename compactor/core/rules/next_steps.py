"""What to do about input that needs an operator: the one source for all commands. Decisions, no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Self

from compactor.core.documents.manifest import OUTSIDE
from compactor.core.documents.records import FileStatus
from compactor.core.logs.names import is_log
from compactor.core.text.safe_text import Suggestions

READ_AS_JSON = "read it with --format json"
"""What to do with a file that needs `input.format = "json"`; part of a quarantined file's detail."""

How = Literal["deliver", "redrive", "restart"]
"""How input is read once its cause is fixed: as a new version, or when the next `compact` finds it; unchanged, by a
redrive; or unchanged with new settings, for which a job is stopped first."""


class Cause(StrEnum):
    """Why input needs an operator, with the fix and how it is read afterwards."""

    fix: str
    how: How

    def __new__(cls, value: str, fix: str, how: How) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.fix, member.how = fix, how
        return member

    # Quarantined files: the statuses of `FileStatus`, and two special cases.
    MISSING = "missing", "restore it under its name", "redrive"
    FORBIDDEN = "forbidden", "grant read permission", "redrive"
    UNREADABLE = "unreadable", "have it delivered complete under its name", "deliver"
    TOO_LARGE = "too_large", "raise input.max_decompressed_bytes", "restart"
    TOO_MANY_REJECTS = "too_many_rejects", 'correct it, or set input.on_too_many_rejects = "keep_rows"', "restart"
    TOO_MUCH_SCRATCH = "too_much_scratch", "raise input.max_decompressed_bytes", "restart"
    TOO_COSTLY = "too_costly", "begin the pattern of input.grok with ^, or give it fewer alternatives", "restart"
    DEFERRED = "deferred", "", "redrive"
    OVER_BUDGET = "over_budget", "check who wrote its manifest, and input.grok", "redrive"
    NOT_NDJSON = "not_ndjson", "convert it to NDJSON under its name", "deliver"
    JSON = "json", 'set input.format = "json"', "restart"
    RANGE = "range", "check that its brokers respond", "redrive"

    # Input left out by `compact`.
    REPLACED = (
        "replaced",
        "choose rebuild (replaces its rows with those of the new version) or append (keeps both)",
        "deliver",
    )
    FORBIDDEN_FOLDER = "forbidden_folder", "grant read permission", "deliver"
    CHANGED = "changed", "", "deliver"
    UNDECIDED = "undecided", "wait until its manifest is done", "deliver"
    UNFINISHED = "unfinished", "wait until its last line is complete, or add the missing line feed", "deliver"
    COMPRESSED = "compressed", "decompress it, so that only its new lines are taken", "deliver"
    UNSETTLED = "unsettled", "wait until it is complete", "deliver"
    LINKED_FOLDER = "linked_folder", "add the folder that the link points to as another SRC", "deliver"
    DANGLING_LINK = "dangling_link", "restore the target of the link, or remove the link", "deliver"
    BAD_NAME = "bad_name", "rename it, or skip it with --exclude", "deliver"


_OF_STATUS = {str(cause): cause for cause in Cause}
_OF_REASON = {
    "replaced": Cause.REPLACED,
    "forbidden": Cause.FORBIDDEN_FOLDER,
    "changed": Cause.CHANGED,
    "undecided": Cause.UNDECIDED,
    "unfinished": Cause.UNFINISHED,
    "compressed": Cause.COMPRESSED,
    "unsettled": Cause.UNSETTLED,
    "linked_folder": Cause.LINKED_FOLDER,
    "outside_link": Cause.LINKED_FOLDER,
    "dangling_link": Cause.DANGLING_LINK,
    "bad_name": Cause.BAD_NAME,
}
_LEFT_OUT = frozenset(_OF_REASON.values())


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do about one cause.

    Attributes:
        fix: What to do first; empty for nothing.
        commands: The commands to run next, in order.
    """

    fix: str
    commands: tuple[str, ...]

    @property
    def text(self) -> str:
        """The full text."""
        return ", then ".join([*filter(None, [self.fix]), *self.commands])


def cause_of(uri: str, status: FileStatus | Literal["replaced"], detail: str) -> Cause:
    """Why a quarantined file or topic range needs an operator."""
    if is_log(uri) and status is FileStatus.MISSING:
        return Cause.RANGE
    return Cause.JSON if READ_AS_JSON in detail else _OF_STATUS[status]


def left_out_cause(reason: str) -> Cause:
    """Why a call of `compact` left a file or folder out."""
    return _OF_REASON[reason]


def next_step(cause: Cause, suggest: Suggestions, manifest_id: str = "") -> NextStep:
    """What to do about a cause; for one manifest if its id is given."""
    redrive = suggest.call("redrive files", *(["--manifest", manifest_id] if manifest_id else []))
    again = suggest.again_with()
    if not again and cause in _LEFT_OUT:
        return _planned_again(cause, suggest)
    if not again:
        stop = [suggest.call("stop")] if cause.how == "restart" else []
        return NextStep(cause.fix, (*stop, redrive))
    if cause is Cause.JSON:
        return NextStep("", (redrive, suggest.again_with("--format json")))
    if cause is Cause.REPLACED:
        return NextStep(cause.fix, (suggest.again_with("--on-replaced rebuild"),))
    return NextStep(cause.fix, (again,) if cause.how == "deliver" else (redrive, again))


def _planned_again(cause: Cause, suggest: Suggestions) -> NextStep:
    """What to do in a job about input that a plan left out. A plan rebuilds no rows, unlike `compact`."""
    prefix = [suggest.prefix] if suggest.prefix else []
    blanks = [] if prefix else ["<PREFIX>"]
    if cause is not Cause.REPLACED:
        return NextStep(cause.fix, (suggest.call("plan", *prefix, blanks=" ".join(blanks)),))
    again = suggest.call("plan", *prefix, blanks=" ".join([*blanks, "--on-replaced append"]))
    return NextStep("decide to keep the rows of both versions", (again,))


_WHY = "--why <TEXT>"


def giving_up(cause: Cause, suggest: Suggestions, uri: str = "") -> str:
    """The command that gives up quarantined input, with this URI or any."""
    blanks = _WHY if uri else f"{'<RANGE>' if cause is Cause.RANGE else '<FILE>'} {_WHY}"
    return suggest.call("dismiss", *([uri] if uri else []), blanks=blanks)


def quarantined_steps(causes: Mapping[Cause, int], suggest: Suggestions, uris: Sequence[str] = ()) -> list[str]:
    """What to do about quarantined input, then how to give it up.

    Args:
        causes: The number of files with each cause.
        suggest: How commands are suggested.
        uris: Some of the files, or all.
    """
    only = uris[0] if uris and sum(causes.values()) == 1 else ""
    ordered = sorted(causes, key=lambda cause: (-causes[cause], cause))
    prefixes = {cause: f"{causes[cause]:,} {cause}: " if len(ordered) > 1 else "" for cause in ordered}
    lines = [f"{prefixes[cause]}{next_step(cause, suggest).text}" for cause in ordered]
    ways = [giving_up(cause, suggest, only) for cause in ordered]
    if again := suggest.again_with():  # the next call settles deleted files
        gone = {Cause.MISSING: again, Cause.RANGE: ""}
        ways = [*(gone.get(cause, "remove it") for cause in ordered), *ways]
    return [*lines, *([f"or give it up: {', or '.join(dict.fromkeys(filter(None, ways)))}"] if ways else [])]


_SENT_AGAIN = {
    "empty": "write it again under a different name",
    "too_big": "write several manifests instead",
    "too_many_files": "write several manifests instead",
    "not_planned": "plan its input with compactor plan",
}
"""What to do instead of a redrive about a dead letter that cannot be corrected, by its reason."""

_FIXES = {
    "unknown_version": "deploy a release that reads its version",
    OUTSIDE: "add its prefix to input.allowed_prefixes",
    "id_already_used": "",
    "hidden_name": "",
    "nested": "",
    "forbidden": "grant read permission",
    "retries_exhausted": "fix the error that {trace} shows",
}
"""What to do before a redrive, by reason; for all others, the original of the dead letter has to be corrected."""


def letter_step(reason: str, manifest_id: str, suggest: Suggestions, *, is_only: bool = True) -> NextStep:
    """What to do about a dead letter, and with `is_only` False about others like it."""
    if reason in _SENT_AGAIN:
        return NextStep(_SENT_AGAIN[reason], (giving_up_manifest(manifest_id, suggest),))
    fix = _FIXES.get(reason, f"correct {suggest.failed}{manifest_id}.json")
    stop = [suggest.call("stop")] if reason == OUTSIDE and not suggest.again else []
    redrive = suggest.call("redrive manifests", *(["--manifest", manifest_id] if is_only else []))
    again = filter(None, [suggest.again_with()])
    return NextStep(fix.format(trace=suggest.call("trace", manifest_id)), (*stop, redrive, *again))


def giving_up_manifest(manifest_id: str, suggest: Suggestions) -> str:
    """The command that gives up a dead letter, or the lost output of a manifest."""
    return suggest.call("dismiss", "--manifest", manifest_id, blanks=_WHY)


def letter_steps(letters: Sequence[tuple[str, str]], suggest: Suggestions) -> list[str]:
    """What to do about dead letters, given the reason and the manifest id of each; then how to give them up."""
    by_reason: dict[str, list[str]] = {}
    for reason, manifest_id in letters:
        by_reason.setdefault(reason, []).append(manifest_id)
    lines = []
    for reason, ids in by_reason.items():
        move = letter_step(reason, ids[0], suggest, is_only=len(ids) == 1)
        lines.append((f"{len(ids):,} {reason}: " if len(letters) > 1 else "") + move.text)
    left = [manifest_id for reason, manifest_id in letters if reason not in _SENT_AGAIN]
    return [*lines, *([f"or give it up: {giving_up_manifest(left[0], suggest)}"] if left else [])]


def lost_steps(manifest_ids: Sequence[str], suggest: Suggestions) -> list[str]:
    """What to do about lost or damaged output of these manifests."""
    if not manifest_ids:
        return []
    rebuild = f"{suggest.call('rebuild')} regenerates lost or damaged files"
    return [rebuild, f"or, if their input is gone, give them up: {giving_up_manifest(manifest_ids[0], suggest)}"]
