"""Reads what a report needs: one listing of the ledger, and only the records of the period."""

from collections.abc import Iterator
from dataclasses import dataclass

from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import Layout
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore
from compactor.core.records import DeadLetter, Done
from compactor.ledger.ledger import Ledger
from compactor.ops.redrive.redrive_log import RedriveLog
from compactor.ops.report.facts import CommitFacts, DeadLetterFacts, Finished, commit_facts, moment_of
from compactor.ops.report.figures import Figures, RejectReason, Sample
from compactor.ops.report.listing import Listed, ListedCounts, finished_in
from compactor.ops.report.period import Period
from compactor.ops.report.quarantined import dead_letter_lines, quarantined_files
from compactor.ops.report.samples import samples_of
from compactor.ops.report.schema_changes import schema_changes
from compactor.ops.report.tallies import ReasonTally, Tallies
from compactor.schema.registry import EMPTY_SCHEMA, SchemaRegistry

SHOWN_UNREADABLE = 10
SAMPLED_REASONS = 20
SAMPLES = 3  # of each reason, from as many manifests if possible


@dataclass(frozen=True, slots=True)
class ReportReader:
    """Reads the figures of a period. Writes nothing.

    Costs one listing of the ledger, the dead letters and the schema versions; three reads for each manifest of the
    period; and at most some hundred more for what is shown line by line. Memory grows only by the ids of the manifests
    of the few dates that are listed ahead.
    """

    store: ObjectStore
    layout: Layout
    ledger: Ledger
    registry: SchemaRegistry
    redrive_log: RedriveLog

    def read(self, period: Period, *, target_file_bytes: int, with_samples: bool) -> Figures:
        """Read the figures of a period, with or without some of the rejected lines."""
        tallies, counts = Tallies(period, target_file_bytes), ListedCounts()
        unreadable, unreadable_records = list[str](), 0
        for found in self._finished(period, counts):
            if isinstance(found, CommitFacts):
                tallies.add(found)
            elif isinstance(found, DeadLetterFacts):
                tallies.add_dead_letter(found)
            elif found is not None:
                unreadable_records += 1
                unreadable += [found][: SHOWN_UNREADABLE - len(unreadable)]
        try:
            changes, latest = schema_changes(self.store, self.layout, self.registry, period), self.registry.latest()
        except (RecordUnreadable, ObjectNotFound) as exc:
            # Nothing is said of any version: all later ones build on the damaged one.
            changes, latest = (), EMPTY_SCHEMA
            unreadable_records += 1
            unreadable += [str(exc)][: SHOWN_UNREADABLE - len(unreadable)]
        return Figures(
            period=period,
            step_seconds=tallies.step_seconds,
            totals=tallies.totals(failed_attempts=counts.failed_attempts, redrives=counts.redrives),
            buckets=tallies.buckets(),
            sizes=tallies.sizes(),
            rejects=self._rejects(tallies, sampled=SAMPLED_REASONS if with_samples else 0),
            dead_letters=dead_letter_lines(tallies.dead_letters, self.redrive_log),
            dead_letters_by_reason=dict(tallies.dead_letters_by_reason),
            dead_letters_kept=sum(
                info.uri.endswith(".reason.json") for info in self.store.list(self.layout.failed_folder)
            ),
            quarantined_files=quarantined_files(tallies.with_quarantined, self.ledger, self.redrive_log),
            schema_changes=changes,
            schema_version=latest.version,
            columns=len(latest.columns),
            unreadable=tuple(unreadable),
            unreadable_records=unreadable_records,
        )

    def _finished(self, period: Period, counts: ListedCounts) -> Iterator[CommitFacts | DeadLetterFacts | str | None]:
        """The facts of each manifest of the period; a message if its records cannot be read, None if it is outside."""

        def read(listed: Listed) -> CommitFacts | DeadLetterFacts | str | None:
            try:
                return self._read(listed, period)
            except (RecordUnreadable, ObjectNotFound) as exc:
                return str(exc)

        return map_ordered(read, finished_in(self.store, self.layout, self.ledger, period, counts))

    def _read(self, listed: Listed, period: Period) -> CommitFacts | DeadLetterFacts | str | None:
        key = listed.key
        done = self.ledger.record(self.layout.done(key), Done)
        moment = moment_of(done.done_at, listed.written_at)
        if not period.holds(moment):
            return None
        finished = Finished(key, moment, is_clock_off=moment != done.done_at)
        outcome = self.ledger.outcome(key)
        if isinstance(outcome, DeadLetter):
            return DeadLetterFacts(finished, outcome)
        accepted = self.ledger.accepted(key.id)
        if accepted is None:
            return f"{self.layout.accepted(key.id)}: there is no such record; expected that of its acceptance"
        return commit_facts(finished, accepted, outcome, done)

    def _rejects(self, tallies: Tallies, *, sampled: int) -> tuple[RejectReason, ...]:
        """All reasons, the most frequent first; the first `sampled` of them with samples."""
        ordered = sorted(tallies.reasons.items(), key=lambda item: (-item[1].lines, item[0]))

        def reason_of(item: tuple[int, tuple[str, ReasonTally]]) -> RejectReason:
            number, (reason, tally) = item
            samples = self._samples(reason, list(tally.newest)) if number < sampled else []
            return RejectReason(reason, tally.lines, tally.manifests, tuple(samples))

        return tuple(map_ordered(reason_of, enumerate(ordered)))

    def _samples(self, reason: str, manifests: list[tuple[str, ...]]) -> list[Sample]:
        each = -(-SAMPLES // len(manifests))
        return [sample for files in manifests for sample in samples_of(self.store, files, reason, each)][:SAMPLES]
