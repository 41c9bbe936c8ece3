"""Finds an input file's manifest by claims and records, and a log record's manifest by its partition's chain."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from compactor.core.documents.landing import LandedLink
from compactor.core.documents.manifest import FileRange, ManifestFile
from compactor.core.inputs.dates import date_of_file, possible_dates
from compactor.core.layout import ManifestKey, canonical, is_s3, is_text, redriven_owner
from compactor.core.logs.names import KINESIS, LogGap, record_or_gap
from compactor.core.ports import ClaimTable, ObjectInfo
from compactor.core.text.formatting import count
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.accounts.reading import Scope, accounts
from compactor.ledger.accounts.replaced import replaced_files
from compactor.ledger.accounts.settling import Settling
from compactor.ledger.landing.chains import LogChains, PartitionPlace
from compactor.ledger.state import State
from compactor.ndjson.files.content_digest import beginnings
from compactor.ndjson.files.object_reading import whole
from compactor.sources.claiming import claim_key, manifests_of
from compactor.sources.file_search import FileSearch, Naming

_BEST_FIRST = ("compacted", "in_work", "waiting", "quarantined", "dead_lettered")


@dataclass(frozen=True, slots=True)
class EarlierLines:
    """Lines of a grown file in an earlier manifest."""

    manifest_id: str
    first_line: int  # the number of the first one, from 1
    last_line: int  # the number of the last one


@dataclass(frozen=True, kw_only=True)
class InputFinder:
    """Finds manifests of input files. `info` is the current file, None if it does not exist."""

    state: State
    search: FileSearch  # skips unreadable records
    claims: ClaimTable | None  # the claims of planned files; None if nothing is ever planned

    def sealed_into(self, holder: str) -> str:
        """The manifest into which a pending part was sealed; any other holder unchanged."""
        return holder if self.claims is None else manifests_of(self.claims, [holder])[holder]

    def claimed_for(self, uri: str, info: ObjectInfo | None) -> str | None:
        """The manifest that owns a file of redriven lines, or has claimed a file."""
        if owner := redriven_owner(uri, self.state.layout.redriven_folder):
            return owner
        if info is None or self.claims is None or not is_text(uri):  # claims only have Unicode names
            return None
        key = claim_key(ManifestFile(uri=uri, etag=info.etag))
        claim = self.claims.get_many([key]).get(key)
        return None if claim is None else self.sealed_into(claim.holder)

    def naming(self, uri: str, info: ObjectInfo | None, days: int) -> Naming | str:
        """The most specific naming of a file, from the first place that has one; else the places searched, in words."""
        wanted, own_days = {canonical(uri)}, self._own_days(uri, info)
        searched = 0
        for day in self._days(own_days, days):
            searched += 1
            if found := _best(self.search.on_dates({day: wanted}), info):
                return found
            # Waiting manifests come after the file's own date, but before all other dates.
            if searched == 1 and (found := _best(self.search.waiting(wanted), info)):
                return found
        others = f" and {count(searched - 1, 'other day')}, the newest first" if searched > 1 else ""
        claims = "the claims, " if self.claims is not None else ""
        return f"{claims}the manifests that wait, the ledger of {own_days[0]}{others}"

    def quarantined(self, uri: str, info: ObjectInfo | None, dates: Iterable[str], days: int) -> list[QuarantinedFile]:
        """A file's quarantined versions, oldest first. They stay on record whatever happens to the file later.

        On S3, only these dates and the file's possible dates are searched.
        """
        known = [*self._own_days(uri, info), *dates]
        searched = self._days(known, max(days, len(known)) if not is_s3(self.state.layout.state) else len(known))
        wanted = {canonical(uri)}
        namings = self.search.on_dates(dict.fromkeys(searched, wanted))
        keys = {ManifestKey(each.date, each.manifest_id) for each in namings if each.state == "quarantined"}
        found = (file for each in accounts(self.state, Scope(keys=list(keys))) for file in each.quarantined)
        files = (file for file in chain(found, replaced_files(self.state)) if canonical(file.uri) in wanted)
        own = sorted(files, key=lambda file: file.started_at)
        return Settling(self.state).files(own)

    def renamed(self, info: ObjectInfo, days: int) -> Naming | None:
        """A local file under its earlier name, by its recorded bytes; None if there is none that lost them."""
        if not info.stamp:
            return None
        dates = self._days(self._own_days(info.uri, info), days)
        is_long = lambda file: file.end_byte == info.size_bytes  # noqa: E731
        search = replace(self.search, versions={info.etag}, also=is_long)
        for naming in search.on_dates(dict.fromkeys(dates, frozenset[str]())):
            there = self.state.store.stat(naming.uri) if naming.may_have(None) else info
            is_gone = there is None or there.etag != naming.etag
            if is_gone and naming.uri != canonical(info.uri) and self._is(info, naming, is_there=there is not None):
                return naming
        return None

    def earlier_lines(self, part: FileRange, follows: str, info: ObjectInfo | None, days: int) -> list[EarlierLines]:
        """The manifests with the lines before a range of a grown file, the first lines first, as far as found."""
        dates, found = list(self._days(self._own_days(part.continues, info), days)), list[EarlierLines]()
        uri, by_digest = "", dict[str, Naming]()
        following: FileRange | None = part
        while following is not None:
            if following.continues != uri:
                uri = following.continues
                wanted = frozenset({canonical(uri)})
                namings = self.search.on_dates(dict.fromkeys(dates, wanted))
                own = (each for each in namings if each.state == "compacted" and each.follows == follows)
                by_digest = {each.digest: each for each in own}
            naming = by_digest.get(following.digest_before)
            if naming is None:
                break
            following = naming.range
            first = following.lines_before + 1 if following is not None else 1
            found.append(EarlierLines(naming.manifest_id, first, naming.lines))
        return found[::-1]

    def _is(self, info: ObjectInfo, naming: Naming, *, is_there: bool) -> bool:
        """Whether a file is a version with another name, by its time, or by its bytes if that name still exists."""
        if info.etag == naming.etag:
            return True
        end = (naming.size_bytes, naming.digest)
        return is_there and end in beginnings(whole(self.state.store, info), {end[0]: {end[1]}})

    def _own_days(self, uri: str, info: ObjectInfo | None) -> list[str]:
        """A file's possible dates, the most likely one first."""
        arrived_at = info.modified_at if info else self.state.clock.now()
        own_day = date_of_file(uri, arrived_at).date
        return [own_day, *sorted(possible_dates(uri, arrived_at) - {own_day})]

    def _days(self, own_days: Sequence[str], days: int) -> Iterator[str]:
        others = (day for day in reversed(list(self.state.ledger.dates())) if day not in own_days)
        return islice(chain(own_days, others), min(max(days, 1), sys.maxsize))


def _best(namings: Iterator[Naming], info: ObjectInfo | None) -> Naming | None:
    """The most specific naming; one of the current version comes first."""

    def rank(naming: Naming) -> tuple[bool, int]:
        is_other = info is not None and naming.etag is not None and naming.etag != info.etag
        return is_other, _BEST_FIRST.index(naming.state)

    return min(namings, key=rank, default=None)


@dataclass(frozen=True, slots=True)
class LandedRecord:
    """The place of a record or a gap.

    Attributes:
        uri: The object that contains it, or the gap that may; empty if it is in no file.
        manifest_id: The manifest with the object or the gap.
        words: The record's place in the object, as far as the chain shows, or why it is not there.
    """

    uri: str
    manifest_id: str
    words: str


def landed_record(state: State, uri: str) -> LandedRecord | None:
    """Find a record or a gap in the log with its name that was landed last. The log is not queried.

    Returns:
        None if no chain contains it.

    Raises:
        ValueError: The URI is neither a record nor a gap.
    """
    chains, found = LogChains(state), list[tuple[PartitionPlace, LandedRecord]]()
    asked = record_or_gap(uri)
    for log_id in chains.log_ids(asked.log):
        place = PartitionPlace(asked.log, log_id, asked.partition_id)
        if isinstance(asked, LogGap):
            link = chains.chain(place).at(asked.after)
            record = _lost(place, link) if link is not None and link.gap else None
        else:
            record = _record(chains, place, asked.position, f"{asked.words} of id {log_id}")
        if record is not None:
            found.append((place, record))
    return max(found, key=lambda each: chains.origin(each[0]).begun_at)[1] if found else None


def _record(chains: LogChains, place: PartitionPlace, position: int, named: str) -> LandedRecord | None:
    lost = f"{named} is in this gap: retention may have removed it before it was landed"
    # A link has the records after its first position, up to and including its last.
    link = chains.chain(place).link_with(position - 1)
    if link is None:
        last = chains.chain(place).last()
        is_in_gap = last is not None and last.gap and not last.begins and position > last.first
        return _lost(place, last, lost) if last is not None and is_in_gap else None
    if link.gap and position < int(link.begins or position + 1):
        return _lost(place, link, lost)
    return LandedRecord(link.uri, link.manifest_id, f"{named} {_words(place, position, link)}")


def _lost(place: PartitionPlace, link: LandedLink, words: str = "") -> LandedRecord:
    gap = place.gap(link)
    return LandedRecord(str(gap), link.manifest_id, words or f"this gap of id {place.log_id}: {gap.words}")


def _words(place: PartitionPlace, position: int, link: LandedLink) -> str:
    """The place of a record among a link's records, in words."""
    if link.begins and position < int(link.begins):
        return "is before the first record of this object: no record has it"
    left_out = f"{count(link.strays, 'packed record')} of other shards left out" if link.strays else ""
    if not link.lines:
        return f"is in no object: {f'there were only {left_out}' if left_out else 'no record around it has a value'}"
    if link.end - link.first == link.records == link.lines:
        return f"is line {position - link.first:,} of this object"
    is_one_each = place.log.scheme == KINESIS and not link.packed
    if is_one_each and position in {int(link.last), int(link.begins or 0)}:
        return f"is line {1 if str(position) == link.begins else link.lines:,} of this object"
    among = f"is among the {count(link.lines, 'line')} of this object"
    if link.tombstones:
        return f"{among}, unless it has no value, as {count(link.tombstones, 'record')} of it"
    return f"{among}, unless it was among {left_out}" if left_out else among
