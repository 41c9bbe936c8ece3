"""Lists the input files of sources, and reports all others. It decides neither which are planned, nor how."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from compactor.core.errors import SettingsError
from compactor.core.inputs.dates import date_of_file
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import canonical, folder, is_s3, is_within
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State
from compactor.sources.candidates import SKIP_REASONS, is_settled, skip_reason
from compactor.sources.plan import LeftOut, Plan
from compactor.sources.spill import SpilledFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScope:
    """Which files to plan.

    Attributes:
        since: Only files written at this time or later.
        settle_seconds: Only files last written at least this long ago.
        hidden: Include files if their names, or those of folders, begin with `_` or `.`.
    """

    date: str | None = None
    since: datetime | None = None
    settle_seconds: float = 0
    hidden: bool = False

    def reason(self, date: str, info: ObjectInfo, now: datetime | None = None) -> str | None:
        """Why a file of a date is left out; without a time, all files count as settled."""
        if self.date is not None and date != self.date:
            return "other_date"
        since = self.since
        # S3 gives times in whole seconds
        if since is not None and info.modified_at < since - timedelta(microseconds=since.microsecond):
            return "too_old"
        return None if now is None or is_settled(info, now, self.settle_seconds) else "unsettled"


EVERYTHING = FileScope()

OUT_OF_SCOPE = frozenset({"other_date", "too_old", "unsettled"})
"""The reasons of `FileScope.reason`."""

Listing = Callable[[SourcePlace], Iterator[ObjectInfo | LeftOut]]
"""Lists the files in a source, and reports what it cannot list."""


def source_files(
    listing: Listing,
    sources: Sequence[SourcePlace],
    plan: Plan,
    *,
    skips: Callable[[str], str],
    with_hidden: bool = False,
) -> Iterator[ObjectInfo]:
    """Yield the input files; counts all others, and listing failures, in a plan.

    Args:
        listing: Lists a source.
        sources: The sources.
        plan: Counts all others.
        skips: Why a file is no input by its URI, one of `SKIP_REASONS`; empty if it may be.
        with_hidden: Whether hidden files are input.
    """

    def reason_for(source: SourcePlace, found: ObjectInfo | LeftOut) -> str:
        reason = _reason(source, found, with_hidden=with_hidden)
        return (skips(found.uri) if reason in {"", "bad_name"} else "") or reason

    for number, source in enumerate(sources):
        for found in listing(source):
            if not _is_meant(source, found) or any(_is_meant(each, found) for each in sources[:number]):
                continue
            reason = reason_for(source, found)
            if not reason and isinstance(found, ObjectInfo) and found.target:
                file = replace(found, uri=found.target)
                if any(_is_meant(each, file) and not reason_for(each, file) for each in sources):
                    reason = "linked_file"
            if reason == "bad_name":
                plan.left_out.append(LeftOut(found.uri, reason, SKIP_REASONS[reason]))
            elif reason:
                plan.skip(reason, found.uri)
            elif isinstance(found, ObjectInfo):
                yield found
            else:
                plan.left_out.append(found)


def _is_meant(source: SourcePlace, found: ObjectInfo | LeftOut) -> bool:
    """Whether a source selects a file, or a folder above some of its files."""
    is_meant = source.takes if isinstance(found, ObjectInfo) else source.reaches
    return canonical(found.uri).startswith(folder(canonical(source.folder))) and is_meant(found.uri)


def _reason(source: SourcePlace, found: ObjectInfo | LeftOut, *, with_hidden: bool) -> str:
    """Why an object is skipped; empty if it is input, or needs attention."""
    is_hidden = not with_hidden and source.is_hidden(found.uri)
    if isinstance(found, ObjectInfo):
        return skip_reason(found.uri, found.size_bytes, [source.folder], is_hidden=is_hidden) or ""
    return "hidden" if is_hidden else ""


def dated_files(
    found: Iterable[ObjectInfo],
    scope: FileScope,
    plan: Plan,
    now: datetime,
    taken_part: Callable[[ObjectInfo, bool], ObjectInfo | None] = lambda info, is_settled: info if is_settled else None,
) -> Iterator[SpilledFile]:
    """Yield the files in a scope with their dates; counts the others in a plan.

    Args:
        found: Files.
        scope: Which of them.
        plan: Counts the others.
        now: The time.
        taken_part: The part of a file that is taken, as a version of it, by whether it is settled; None if it has to
            wait.
    """
    for info in found:
        dated = date_of_file(info.uri, info.modified_at)
        # On S3, an object appears as a whole.
        reason = scope.reason(dated.date, info, None if is_s3(info.uri) else now)
        if reason is None or reason == "unsettled":
            if (part := taken_part(info, reason is None)) is not None:
                yield SpilledFile.listed(dated.date, part, dated.rule)
                continue
            plan.left_out.append(unsettled(info.uri, scope.settle_seconds))
        plan.skip(reason or "unsettled", info.uri)


def unsettled(uri: str, settle_seconds: float) -> LeftOut:
    """A file that is left to a later plan, since it is being written."""
    return LeftOut(uri, "unsettled", f"written less than {settle_seconds:g} s ago; expected it to be complete")


def check_prefix(state: State, prefix: str, allowed_prefixes: Sequence[str]) -> None:
    """Check that a prefix may be planned.

    Raises:
        SettingsError: It is outside the allowed ones, or is a file.
    """
    # guard: nothing outside the allowed prefixes is planned
    if not any(is_within(folder(prefix), each) for each in allowed_prefixes):
        allowed = ", ".join(allowed_prefixes)
        raise SettingsError([f"plan: {prefix} -> expected a folder within input.allowed_prefixes: {allowed}"])
    if not prefix.endswith("/") and state.store.stat(prefix) is not None:
        raise SettingsError([f"plan: {prefix} -> is a file, expected its folder"])
