"""Gives up quarantined input, recording who did so and why: files, and ranges of topics and streams."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from compactor.core.documents.changes import How
from compactor.core.layout import canonical
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.accounts.reading import Scope, is_there
from compactor.ledger.change_log import give_up
from compactor.ledger.state import State
from compactor.ops.redrive.redrivable import Refused, find_redrivable


@dataclass(frozen=True, slots=True)
class Dismissal:
    """Quarantined input that is given up. With `--dry-run` nothing is written."""

    inputs: tuple[QuarantinedFile, ...] = ()  # the given-up input: files, and ranges of topics and streams
    refused: tuple[Refused, ...] = ()  # requested input that is not quarantined
    why: str = ""  # why the input is no longer expected
    dry_run: bool = False  # whether nothing was written


def find_quarantined(
    state: State, uris: Sequence[str] = (), manifest_ids: Sequence[str] = (), *, date: str | None = None
) -> Dismissal:
    """Find quarantined files, and ranges of topics and streams, that nothing settled.

    Args:
        state: Has the records.
        uris: Only these files, of which all quarantined versions count, and ranges; empty for any.
        manifest_ids: Only input of these manifests; empty for all.
        date: Only input of manifests of this date; None for all.
    """
    scan = find_redrivable(state, Scope("files", tuple(manifest_ids), date=date))
    asked = {canonical(uri): uri for uri in uris}
    inputs = [file for source in scan.sources for file in source.files if not uris or canonical(file.uri) in asked]
    found = {canonical(file.uri) for file in inputs}
    refused = [Refused("", uri, "it is not quarantined") for name, uri in asked.items() if name not in found]
    # Other manifests that could not be read say nothing about the files that were asked for.
    unreadable = scan.refused if manifest_ids or not uris else ()
    return Dismissal(tuple(inputs), (*unreadable, *refused))


def given_up(
    state: State, inputs: Iterable[QuarantinedFile], how: How, why: str, *, by: str
) -> tuple[QuarantinedFile, ...]:
    """Record that some input is given up, and return it with that. Earlier records stay unchanged."""

    def settled(each: QuarantinedFile) -> QuarantinedFile:
        change = give_up(state, each.manifest_id, each.uri, how, why, by=by)
        return replace(each, settled_by=change.words, dismissed=how)

    return tuple(map(settled, inputs))


def given_up_if_gone(
    state: State,
    files: Iterable[QuarantinedFile],
    with_rows: Callable[[Collection[str]], Collection[str]],
    *,
    by: str,
) -> tuple[QuarantinedFile, ...]:
    """Give up the given files that no longer exist and never had rows; return these.

    Args:
        state: Source of the records.
        files: Quarantined versions that nothing settled.
        with_rows: Finds which of some files, by canonical URI, have rows of any version.
        by: Who gives them up.
    """
    gone = [each for each in files if not is_there(state, each.uri)]
    kept = with_rows({canonical(each.uri) for each in gone}) if gone else ()
    without = (each for each in gone if canonical(each.uri) not in kept)
    return given_up(state, without, "removed", "it no longer exists and had no rows", by=by)
