"""Reads what waits for a person: the latest dead letters, and quarantined files of the latest commits."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.documents.records import DeadLetter, RecentCommit
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.accounts.later_rows import KnownRows, Version
from compactor.ledger.accounts.reading import Detail, Scope, accounts, accounts_of, kept_letters
from compactor.ledger.accounts.settling import Settling, named_versions
from compactor.ledger.history.unsummarised import unsummarised_if_readable
from compactor.ledger.state import State
from compactor.ops.status.values import DeadLetters, FilesQuarantined, Spent

LETTERS_READ = 50  # how many dead letters, the latest, are read

COMMITS_READ = 16  # how many commits, the latest that quarantined files, are read

_NAMED = 5


@dataclass(slots=True)
class StatusCache:
    """What repeated readings need not read again, because it never changes.

    It is bounded: each reading drops what it did not need.
    """

    # The bytes that each waiting manifest names, by its URI and ETag
    weights: dict[tuple[str, str], int] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)  # dead letters that were settled for good, by manifest id
    # The quarantined files of each commit, by manifest id
    quarantined: dict[str, list[QuarantinedFile]] = field(default_factory=dict)
    rows: KnownRows = field(default_factory=KnownRows)  # that commits have of quarantined files
    taken: KnownRows = field(default_factory=KnownRows)  # that commits have of the versions that dead letters name
    # The seconds from arrival to visible of each file of a commit that is done, by manifest id
    arrivals: dict[str, tuple[float, ...]] = field(default_factory=dict)
    cost: tuple[datetime, Spent] | None = None  # the latest answer of Glue, and when it came

    def keep_only(self, commits: Collection[str]) -> None:
        """Drop what the last reading did not need, given the latest commits."""
        self.quarantined = {key: files for key, files in self.quarantined.items() if key in commits}
        self.rows.keep_only(commits)
        self.arrivals = {key: seconds for key, seconds in self.arrivals.items() if key in commits}


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReader:
    """Reads dead letters and quarantined files that are not settled."""

    state: State
    cache: StatusCache

    def dead_letters(self, recent: Sequence[RecentCommit]) -> DeadLetters:
        """The dead letters, of which the latest are read."""
        kept = kept_letters(self.state, unsummarised_if_readable(self.state, begun_only=True))
        latest = sorted(kept.waiting.items(), key=lambda letter: letter[1], reverse=True)[:LETTERS_READ]
        written_at = dict(latest)
        self.cache.settled &= written_at.keys()
        asked = [each for each in written_at if each not in self.cache.settled]
        left = list[DeadLetter]()
        named = dict[str, list[Version]]()
        for each in accounts_of(self.state, asked, Detail.ACCEPTED | Detail.LINEAGE):
            if each.letter is None:
                fault = str(
                    each.fault or f"{self.state.layout.accepted(each.id)}: expected the record of a dead letter"
                )
                left.append(_unreadable(each.id, written_at[each.id], fault))
            elif not each.was_redriven:
                left.append(each.letter)
                named[each.id] = named_versions(each)
            elif each.redrives_are_final:
                self.cache.settled.add(each.id)
        taken = self._taken_over(named, recent)
        letters = [each for each in left if each.manifest_id not in taken]
        reasons = dict(Counter(letter.reason for letter in letters))
        looked_at = kept.manifests - (len(kept.waiting) - len(latest))
        return DeadLetters(kept.manifests, looked_at, len(letters), reasons, tuple(letters[:_NAMED]))

    def _taken_over(self, named: Mapping[str, Sequence[Version]], recent: Sequence[RecentCommit]) -> set[str]:
        """Those dead letters of which later manifests took over all files.

        All later manifests are read only where a redrive was interrupted, which is rare; elsewhere the latest commits.
        """
        settling = Settling(self.state, self.cache.taken)
        ids = [each for each, versions in named.items() if versions]
        is_interrupted = dict(zip(ids, map_ordered(settling.was_interrupted, ids), strict=True))
        taken = settling.taken_over({each: named[each] for each in ids if is_interrupted[each]})
        others = {each: named[each] for each in ids if not is_interrupted[each]}
        taken |= settling.taken_over(others, [each.key for each in recent])
        taken |= settling.duplicates([each for each in named if each not in taken])
        self.cache.settled |= taken.keys()
        return set(taken)

    def files(self, recent: Sequence[RecentCommit]) -> FilesQuarantined:
        """Files that the latest commits quarantined and that are not settled. Summaries are given oldest first."""
        latest_first = recent[::-1]
        asked = [each for each in latest_first if each.quarantined][:COMMITS_READ]
        quarantined = self._quarantined(asked)
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

    def _quarantined(self, asked: Sequence[RecentCommit]) -> list[QuarantinedFile]:
        """The quarantined files of some commits. The summaries are a cache: what they name need not be there."""
        known = self.cache.quarantined
        new = [each.key for each in asked if each.manifest_id not in known]
        for each in accounts(self.state, Scope(keys=new)):
            if each.fault is None and each.outcome is not None:
                known[each.id] = list(each.quarantined)
        return [file for each in asked for file in known.get(each.manifest_id, ())]


def _unreadable(manifest_id: str, written_at: datetime, fault: str) -> DeadLetter:
    return DeadLetter(
        manifest_id=manifest_id,
        date="",
        reason="unreadable",
        message=fault,
        source_uri="",
        run_id="",
        decided_at=written_at,
    )
