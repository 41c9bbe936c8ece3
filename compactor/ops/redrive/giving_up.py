"""Gives up quarantined input, recording who did so and why: lost ranges of topics and streams, and files."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from compactor.core.documents.changes import How
from compactor.core.layout import canonical
from compactor.core.logs.names import is_log
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.accounts.reading import Scope, is_there
from compactor.ledger.change_log import give_up
from compactor.ledger.state import State
from compactor.ops.redrive.redrivable import Refused, find_redrivable


@dataclass(frozen=True, slots=True)
class InputsGivenUp:
    """Quarantined input that is given up. With `--dry-run` nothing is written."""

    inputs: tuple[QuarantinedFile, ...] = ()  # the given-up input: files, or ranges of topics and streams
    refused: tuple[Refused, ...] = ()  # requested input that is not given up
    why: str = ""  # why the input is no longer expected
    dry_run: bool = False  # whether nothing was written


def find_lost(state: State, manifest_ids: Sequence[str] = (), *, date: str | None = None) -> InputsGivenUp:
    """Find quarantined ranges of topics and streams that nothing settled, of some manifests or of all.

    Files are left out: they may reappear and be redriven.
    """
    scan = find_redrivable(state, Scope("files", tuple(manifest_ids), date=date))
    lost = [file for source in scan.sources for file in source.files if is_log(file.uri)]
    return InputsGivenUp(tuple(lost), scan.refused)


def find_files(state: State, uris: Iterable[str]) -> InputsGivenUp:
    """Find the quarantined versions of some files that nothing settled."""
    versions: dict[str, list[QuarantinedFile]] = {canonical(uri): [] for uri in uris}
    for source in find_redrivable(state, Scope("files")).sources:
        for file in source.files:
            if not is_log(file.uri) and (found := versions.get(canonical(file.uri))) is not None:
                found.append(file)
    refused = (uri for uri in dict.fromkeys(uris) if not versions[canonical(uri)])
    return InputsGivenUp(
        tuple(file for found in versions.values() for file in found),
        tuple(Refused("", uri, "it is not quarantined") for uri in refused),
    )


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
