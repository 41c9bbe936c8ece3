"""Verifies a manifest's records in the ledger: whether any is missing, wrong or damaged."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from compactor.core.documents.changes import Commit
from compactor.core.documents.document import Document
from compactor.core.documents.records import Accepted, Attempt, AttemptFailure, AttemptsFolded, Done, Redrive
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import ManifestKey, base_name, done_generation, done_name, redrive_number
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.account import Account
from compactor.ledger.accounts.reading import Listed
from compactor.ledger.ledger import is_done, newest_generation
from compactor.ledger.state import State
from compactor.ops.verify.landed import has_draft
from compactor.ops.verify.report import Discrepancy, Finding, VerifyResult

_ATTEMPTS: Mapping[re.Pattern[str], type[Document]] = {
    re.compile(r"attempt-\d+\.json"): Attempt,
    re.compile(r"attempt-\d+-failed\.json"): AttemptFailure,
    re.compile(r"attempts-to-\d+\.json"): AttemptsFolded,
}

T = TypeVar("T")


def read_records(state: State, listed: Listed) -> tuple[Account, list[Discrepancy]]:
    """Read all records of a manifest: its account, and their faults. Safe while a job runs."""
    names = state.ledger.records(listed.key) if listed.records is None else listed.records
    while True:
        account, faults = _read_all(state, Account(key=listed.key, records=names))
        if not faults:
            return account, faults
        known, names = names, state.ledger.records(listed.key)
        if names.keys() == known.keys():  # otherwise a job added a record meanwhile
            return account, faults


def _read_all(state: State, account: Account) -> tuple[Account, list[Discrepancy]]:
    key, names, faults = account.key, account.records, list[Discrepancy]()
    layout, ledger = state.layout, state.ledger
    folder, uri = layout.ledger_records(key), layout.accepted(key.id)
    accepted = _read(faults, key.id, uri, partial(ledger.record, uri, Accepted))
    if accepted is not None and accepted.manifest_id != key.id:
        faults.append(Discrepancy(key.id, uri, "a record of this manifest", f"one of {accepted.manifest_id}"))
    for name in sorted(names):
        kind = _kind(name)
        if kind is not None:
            record = _read(faults, key.id, folder + name, partial(ledger.record, folder + name, kind))
            if (owner := getattr(record, "manifest_id", key.id)) != key.id:
                faults.append(Discrepancy(key.id, folder + name, "a record of this manifest", f"one of {owner}"))
    generation = max([newest_generation(names) or 1, *(done_generation(name) or 1 for name in names)])
    uri, outcome, is_over = layout.outcome(key, generation), None, is_done(None, names)
    if base_name(uri) in names:
        outcome = _read(faults, key.id, uri, partial(ledger.outcome_of, key, generation))
        is_over = done_name(generation) in names
        for earlier in range(1, generation):  # superseded outcomes stay on record
            superseded = layout.outcome(key, earlier)
            if base_name(superseded) in names:
                _read(faults, key.id, superseded, partial(ledger.outcome_of, key, earlier))
            else:
                expected = "the outcome that a rebuild superseded"
                faults.append(Discrepancy(key.id, superseded, expected, "no such record"))
    elif is_over:
        faults.append(Discrepancy(key.id, uri, "the outcome of a manifest that is done", "no such record"))
    account = replace(account, accepted=accepted, outcome=outcome, is_done=is_over)
    faults += _outcome_faults(state, account)
    if not is_over and not _is_open(state, key, accepted, generation):
        missing = layout.done(key, generation) if outcome else uri
        faults.append(Discrepancy(key.id, missing, "a record, or a manifest that is open or waiting", "neither"))
    return account, faults


def _outcome_faults(state: State, account: Account) -> Iterator[Discrepancy]:
    key, outcome, accepted = account.key, account.outcome, account.accepted
    if outcome is None:
        return
    uri = state.layout.outcome(key, outcome.generation)
    if outcome.key != key:
        found = f"that of manifest {outcome.manifest_id} of {outcome.date}"
        yield Discrepancy(key.id, uri, f"the outcome of manifest {key.id} of {key.date}", found)
    if not isinstance(outcome, Commit):
        return
    attempt = state.layout.attempt(key, outcome.attempt)
    if base_name(attempt) not in account.records:
        yield Discrepancy(key.id, attempt, "the attempt that was committed", "no such record")
    if accepted is not None and accepted.manifest is not None:
        named, reported = [file.uri for file in accepted.manifest.files], [file.uri for file in outcome.files]
        if named != reported:
            found = f"{len(reported)} files, {len(set(reported) - set(named))} with other names"
            yield Discrepancy(key.id, uri, f"the {len(named)} files of the manifest", found)


def _is_open(state: State, key: ManifestKey, accepted: Accepted | None, generation: int = 1) -> bool:
    """Whether a job will finish the manifest."""
    if generation > 1:
        return any(of == generation for _, of, _ in state.ledger.open_rebuilds(key.id))
    if state.store.stat(state.layout.archived_manifest(key)) is not None:
        return False  # only finished manifests are archived
    waiting = accepted.source_uri if accepted else state.layout.manifest(key.id)
    return any(state.store.stat(uri) is not None for uri in (state.layout.open_marker(key.id), waiting))


def lost_of_archived(state: State, folder: str) -> Iterator[Discrepancy]:
    """Archived manifests without any record, in a folder of the archive."""
    owners = (state.layout.archived_key(info.uri) for info in state.store.list(folder))
    return filter(None, map_ordered(partial(_lost, state), filter(None, owners)))


def _lost(state: State, key: ManifestKey) -> Discrepancy | None:
    if state.ledger.record_names(key):
        return None
    return Discrepancy(key.id, state.layout.ledger_records(key), "the records of an accepted manifest", "no records")


def lost_of_accepted(state: State) -> Iterator[Finding]:
    """Accepted manifests without other records that are neither archived nor open, and the number of open ones."""
    listed = state.store.list(state.layout.accepted_folder)
    ids = (base_name(info.uri).removesuffix(".json") for info in listed if info.uri.endswith(".json"))
    for found in map_ordered(partial(_lost_of_accepted, state), ids):
        yield from found


def _lost_of_accepted(state: State, manifest_id: str) -> list[Discrepancy] | list[VerifyResult]:
    uri, faults = state.layout.accepted(manifest_id), list[Discrepancy]()
    accepted = _read(faults, manifest_id, uri, partial(state.ledger.record, uri, Accepted))
    if accepted is None:
        return faults
    if accepted.kind in {"revoked", "part"} or state.ledger.record_names(accepted.key):
        return []
    if state.store.stat(state.layout.archived_manifest(accepted.key)) is not None:
        return []
    if _is_open(state, accepted.key, accepted) or has_draft(state, manifest_id):
        return [VerifyResult(unfinished=1)]
    lost = _lost(state, accepted.key)  # unless a job finished it meanwhile
    return [lost] if lost else []


def _kind(name: str) -> type[Document] | None:
    if redrive_number(name) is not None:
        return Redrive
    if done_generation(name) is not None:
        return Done
    return next((kind for pattern, kind in _ATTEMPTS.items() if pattern.fullmatch(name)), None)


def _read(faults: list[Discrepancy], manifest_id: str, uri: str, read: Callable[[], T]) -> T | None:
    try:
        return read()
    except ObjectNotFound:
        faults.append(Discrepancy(manifest_id, uri, "a record", "no such record"))
    except RecordUnreadable as exc:
        faults.append(Discrepancy(manifest_id, uri, "a record that can be read", str(exc).removeprefix(f"{uri}: ")))
    return None
