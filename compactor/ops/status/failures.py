"""Reads what waits for a person: the latest dead letters, and quarantined files of the latest commits."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from compactor.core.documents.records import Commit, DeadLetter, RecentCommit
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.accounts.account import QuarantinedFile, quarantined_files
from compactor.ledger.accounts.kept_letters import kept_letters, letter_id
from compactor.ledger.accounts.later_rows import Version
from compactor.ledger.accounts.settling import Settling
from compactor.ledger.history.redrive_log import RedriveLog, was_redriven
from compactor.ledger.history.unsummarised import unsummarised_if_readable
from compactor.ledger.state import State
from compactor.ops.status.cache import StatusCache
from compactor.ops.status.values import DeadLetters, FilesQuarantined

LETTERS_READ = 50  # how many dead letters, the latest, are read

COMMITS_READ = 16  # how many commits, the latest that quarantined files, are read

_NAMED = 5
_UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReader:
    """Reads dead letters and quarantined files that are not settled."""

    state: State
    redrive_log: RedriveLog
    cache: StatusCache

    def dead_letters(self, recent: Sequence[RecentCommit]) -> tuple[DeadLetters, list[str]]:
        """The dead letters, and the URIs of those that were read."""
        kept = kept_letters(self.state, unsummarised_if_readable(self.state, begun_only=True))
        latest = sorted(kept.waiting, key=lambda info: info.modified_at, reverse=True)[:LETTERS_READ]
        found_open = [letter for letter in map_ordered(self._open_letter, latest) if letter is not None]
        letters = self._unsettled(found_open, recent)
        reasons = dict(Counter(letter.reason for letter in letters))
        looked_at = kept.manifests - (len(kept.waiting) - len(latest))
        found = DeadLetters(kept.manifests, looked_at, len(letters), reasons, tuple(letters[:_NAMED]))
        return found, [info.uri for info in latest]

    def _open_letter(self, info: ObjectInfo) -> DeadLetter | None:
        uri = info.uri
        if uri in self.cache.redriven:
            return None
        manifest_id = letter_id(info)
        try:
            letter = self._letter(info, manifest_id)
            entries = self.redrive_log.entries_about(manifest_id)
        except ObjectNotFound:  # redriven by hand since the listing
            return None
        except StuckError as exc:  # a person has to check
            return _unreadable(manifest_id, info, str(exc))
        if not was_redriven(manifest_id, entries):
            return letter
        own = [each for each in entries if each.redrive.source == manifest_id]
        if all(each.fate in {"accepted", "revoked"} for each in own):
            self.cache.redriven.add(uri)
        return None

    def _unsettled(self, letters: Sequence[DeadLetter], recent: Sequence[RecentCommit]) -> list[DeadLetter]:
        """Those dead letters of which no later manifests took over all files.

        All later manifests are read only where a redrive was interrupted, which is rare; elsewhere the latest commits.
        """
        named = dict(map_ordered(self._named_by, (each for each in letters if each.reason != _UNREADABLE)))
        ids = [each for each, versions in named.items() if versions]
        settling = Settling(self.state, self.cache.taken)
        is_interrupted = dict(zip(ids, map_ordered(settling.was_interrupted, ids), strict=True))
        searched = {each: named[each] for each in ids if is_interrupted[each]}
        others = {each: named[each] for each in ids if not is_interrupted[each]}
        taken = settling.taken_over(searched)
        taken |= settling.taken_over(others, [each.key for each in recent])
        taken |= settling.duplicates([each for each in named if each not in taken])
        self.cache.redriven |= {self.state.layout.failure_reason(each) for each in taken}
        return [each for each in letters if each.manifest_id not in taken]

    def _named_by(self, letter: DeadLetter) -> tuple[str, Sequence[Version]]:
        known = self.cache.named.get(letter.manifest_id)
        if known is None:
            known = self.cache.named[letter.manifest_id] = Settling(self.state).named_versions(letter.manifest_id)
        return letter.manifest_id, known

    def _letter(self, info: ObjectInfo, manifest_id: str) -> DeadLetter:
        known = self.cache.letters.get(info.uri)
        if known is not None:
            return known
        data = self.state.store.read(info.uri)
        try:
            letter = DeadLetter.read(data, info.uri, "a dead letter")
        except StuckError as exc:  # not cached: it may be repaired
            return _unreadable(manifest_id, info, str(exc))
        self.cache.letters[info.uri] = letter
        return letter

    def files(self, recent: Sequence[RecentCommit]) -> FilesQuarantined:
        """Files that the latest commits quarantined and that are not settled. Summaries are given oldest first."""
        latest_first = recent[::-1]
        asked = [each for each in latest_first if each.quarantined][:COMMITS_READ]
        quarantined = [file for found in map_ordered(self._files_of, asked) for file in found]
        since = min((each.started_at for each in quarantined), default=None)
        later = [each.key for each in recent if since is not None and each.decided_at > since]
        # If the log of redrives cannot be read, a person has to check.
        checked = Settling(self.state, self.cache.rows).files(quarantined, later)
        files = [each for each in checked if not each.is_settled]
        looked_at = len(recent) if len(asked) < COMMITS_READ else latest_first.index(asked[-1]) + 1
        statuses = dict(Counter(str(file.status) for file in files))
        dismissed = sum(bool(each.dismissed) for each in checked)
        return FilesQuarantined(
            looked_at, len(files), statuses, tuple(files[:_NAMED]), Counter(each.cause for each in files), dismissed
        )

    def _files_of(self, summary: RecentCommit) -> list[QuarantinedFile]:
        known = self.cache.quarantined.get(summary.manifest_id)
        if known is None:
            try:
                outcome = self.state.ledger.outcome(summary.key)
            except (ObjectNotFound, StuckError):  # the summaries are a cache: what they name need not be there
                return []
            known = quarantined_files(outcome) if isinstance(outcome, Commit) else []
            self.cache.quarantined[summary.manifest_id] = known
        return known


def _unreadable(manifest_id: str, info: ObjectInfo, fault: str) -> DeadLetter:
    return DeadLetter(
        manifest_id=manifest_id,
        date="",
        reason=_UNREADABLE,
        message=fault,
        source_uri="",
        run_id="",
        decided_at=info.modified_at,
    )
