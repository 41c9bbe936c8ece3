"""Gives up quarantined input, dead letters and lost output, recording who did so and why."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from compactor.core.documents.changes import How, Part, StagedFile
from compactor.core.layout import canonical
from compactor.ledger.accounts.account import Account, DeadLetterManifest, QuarantinedFile
from compactor.ledger.accounts.reading import Scope, accounts, is_there
from compactor.ledger.accounts.replaced import replaced_files
from compactor.ledger.accounts.settling import Settling
from compactor.ledger.change_log import give_up
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ops.redrive.redrivable import Refused, find_redrivable


@dataclass(frozen=True, slots=True)
class LostFile:
    """A committed file of output or rejects that no longer exists, although no retention rule removed it."""

    manifest_id: str
    generation: int  # the generation of its commit
    uri: str
    rows: int  # how many rows or rejected lines it had
    settled_by: str = ""  # who gave it up, and why; empty if it is open


@dataclass(frozen=True, slots=True)
class Dismissal:
    """What is given up. With `--dry-run` nothing is written."""

    inputs: tuple[QuarantinedFile, ...] = ()  # the given-up input: files, and ranges of topics and streams
    dead_letters: tuple[DeadLetterManifest, ...] = ()  # the given-up dead letters
    lost_files: tuple[LostFile, ...] = ()  # the given-up files of output and rejects
    refused: tuple[Refused, ...] = ()  # what was requested and cannot be given up
    why: str = ""  # why it is no longer expected
    dry_run: bool = False  # whether nothing was written

    @property
    def is_empty(self) -> bool:
        """Whether nothing is given up."""
        return not (self.inputs or self.dead_letters or self.lost_files)


def find_unsettled(
    state: State, uris: Sequence[str] = (), manifest_ids: Sequence[str] = (), *, date: str | None = None
) -> Dismissal:
    """Find quarantined files, and ranges of topics and streams, that nothing settled.

    If only manifests are named, also those that are dead letters, and their lost files of output and rejects.

    Args:
        state: Has the records.
        uris: Only these files, of which all quarantined versions count, and ranges; empty for any.
        manifest_ids: Only input of these manifests; empty for all.
        date: Only input of manifests of this date; None for all.
    """
    scan = find_redrivable(state, Scope("files", tuple(manifest_ids), date=date))
    asked = {canonical(uri): uri for uri in uris}
    of: Collection[str] | None = manifest_ids or None
    if date:
        of = [key.id for key in state.ledger.manifests(date) if key.id in (of or [key.id])]
    replaced = Settling(state).files(replaced_files(state, of))
    files = [file for source in scan.sources for file in source.files]
    files += [each for each in replaced if not each.is_settled]
    inputs = [file for file in files if not uris or canonical(file.uri) in asked]
    found = {canonical(file.uri) for file in inputs}
    refused = [Refused("", uri, "it is not quarantined") for name, uri in asked.items() if name not in found]
    if uris or not manifest_ids:
        # Other manifests that could not be read say nothing about the files that were asked for.
        unreadable = scan.refused if manifest_ids or not uris else ()
        return Dismissal(tuple(inputs), refused=(*unreadable, *refused))
    letters = find_redrivable(state, Scope("manifests", tuple(manifest_ids), date=date))
    dead = tuple(source.letter for source in letters.sources if source.letter is not None)
    named = list(accounts(state, Scope(manifest_ids=tuple(manifest_ids))))
    lost = [
        file
        for each in named
        if date in {None, each.key.date}
        for file in lost_files(state, each)
        if not file.settled_by
    ]
    has_some = {each.manifest_id for each in inputs} | {each.manifest_id for each in dead}
    has_some |= {each.manifest_id for each in lost}
    are_letters = {each.id for each in named if each.letter is not None}
    left = [each for each in scan.refused if each.manifest_id not in has_some | are_letters]
    left += [each for each in letters.refused if each.manifest_id in are_letters - has_some]
    return Dismissal(tuple(inputs), dead, tuple(lost), tuple(left))


def lost_files(state: State, account: Account) -> Iterator[LostFile]:
    """The lost files of a manifest, whether or not an operator gave them up; none if it is not done."""
    if account.commit is None or not account.is_done:
        return
    commit, visible = account.commit, Visible(state)
    parts: dict[Part, Sequence[StagedFile]] = {"rows": commit.outputs, "rejects": commit.rejects}
    for part, files in parts.items():
        for file in files:
            if is_there(state, file.final) or visible.moved(commit.date, file.final):
                continue
            if visible.deletion(part, commit.key, commit.generation) is None:
                given_up = visible.given_up(commit, file.final)
                words = given_up.words if given_up is not None else ""
                yield LostFile(commit.manifest_id, commit.generation, file.final, file.rows, words)


def dismissed(state: State, found: Dismissal, why: str, *, by: str) -> Dismissal:
    """Record that an operator gives up what was found, and return it with that."""
    record = partial(give_up, state, how="dismissed", reason=why, by=by)
    letters = [(each, record(each.manifest_id, "")) for each in found.dead_letters]
    for each in found.lost_files:
        record(each.manifest_id, each.uri, generation=each.generation)
    return replace(
        found,
        inputs=given_up(state, found.inputs, "dismissed", why, by=by),
        dead_letters=tuple(replace(each, settled_by=made.words, dismissed=made.how) for each, made in letters),
    )


def given_up(
    state: State, inputs: Iterable[QuarantinedFile], how: How, why: str, *, by: str
) -> tuple[QuarantinedFile, ...]:
    """Record that some input is given up, and return it with that. Earlier records stay unchanged."""

    def settled(each: QuarantinedFile) -> QuarantinedFile:
        change = give_up(state, each.manifest_id, each.uri, how, why, by=by, etag=each.etag)
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
