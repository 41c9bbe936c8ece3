"""Reads what a report needs: one listing of the ledger, and only the records of the period."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat

from compactor.core.documents.records import DeadLetter, Done
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.kept_letters import kept_letters
from compactor.ledger.accounts.settling import Settling
from compactor.ledger.history.expired_seen import expired_seen
from compactor.ledger.history.unsummarised import unsummarised_if_readable
from compactor.ledger.housekeeping import failing_tasks
from compactor.ledger.state import State
from compactor.manifests.kafka.topics_seen import TopicWatch
from compactor.manifests.kinesis.streams_seen import StreamWatch
from compactor.ops.report import figures
from compactor.ops.report.period import Period
from compactor.ops.report.reading.facts import CommitFacts, DeadLetterFacts, commit_facts, moment_of
from compactor.ops.report.reading.listing import Listed, finished_in
from compactor.ops.report.reading.samples import samples_of
from compactor.ops.report.reading.schema_changes import schema_of
from compactor.ops.report.reading.tallies import ReasonTally, Tallies
from compactor.schema.registry import SchemaRegistry
from compactor.table.listed import ListedTable
from compactor.table.standing import table_seen

SAMPLED_REASONS = 20
SAMPLES = 3  # of each reason, from as many manifests if possible


@dataclass(frozen=True, slots=True)
class ReportReader:
    """Reads the figures of a period. Writes nothing.

    Costs one listing of the ledger, without closed dates that have nothing of the period, and of the schema versions;
    four reads for each manifest of the period; and at most some hundred more for what is shown line by line, beside the
    commits since the first dead letter or quarantined file that is shown and was not redriven. Memory grows only by the
    ids of the manifests of the few dates that are listed ahead.
    """

    state: State
    registry: SchemaRegistry
    sla_seconds: float | None = None  # how long a file may take; None without an SLA
    table: ListedTable | None = None  # the table of the output; its catalog is not asked
    topics: TopicWatch | None = None  # the topics that jobs plan; brokers are not asked
    kinesis: StreamWatch | None = None  # the streams of Kinesis that jobs plan

    def read(self, period: Period, *, target_file_bytes: int, with_samples: bool) -> figures.Figures:
        """Read the figures of a period, with or without some of the rejected lines."""
        tallies = Tallies(period, target_file_bytes)
        listed = finished_in(self.state, period, tallies.counts)
        for found in map_ordered(partial(self._facts, period=period), listed):
            if isinstance(found, CommitFacts):
                tallies.add(found)
            elif isinstance(found, DeadLetterFacts):
                tallies.add_dead_letter(found)
            elif found is not None:
                tallies.add_unreadable(found)
        try:
            schema = schema_of(self.state, self.registry, period)
        except (RecordUnreadable, ObjectNotFound) as exc:
            # Nothing is said of any version: all later ones build on the damaged one.
            schema = figures.Schema(0, 0, ())
            tallies.add_unreadable(str(exc))
        kept = kept_letters(self.state, unsummarised_if_readable(self.state, begun_only=True)).manifests
        settling, shown = Settling(self.state), list(tallies.dead_letters)
        fates = settling.letters([each.manifest_id for each in shown])
        letters = [
            replace(each, redriven=fates[each.manifest_id].redriven, settled_by=fates[each.manifest_id].settled_by)
            for each in shown
        ]
        files = settling.files(list(tallies.for_operator))
        return figures.Figures(
            period=period,
            totals=tallies.totals(),
            bucket_seconds=tallies.step_seconds,
            buckets=tallies.buckets(),
            sizes=tallies.sizes(),
            rejects=self._rejects(tallies, sampled=SAMPLED_REASONS if with_samples else 0),
            dead_letters=figures.DeadLetters.of(kept, tallies.dead_letters_by_reason, letters),
            quarantined_files=figures.QuarantinedFiles.of(tallies.files_by_status, files),
            schema=schema,
            unreadable=tallies.unreadable(),
            expired=expired_seen(self.state),
            table=None if self.table is None else table_seen(self.state, self.table, self.state.clock.now()),
            topics=() if self.topics is None else self.topics.seen(self.state.clock.now()),
            kinesis=() if self.kinesis is None else self.kinesis.seen(self.state.clock.now()),
            housekeeping=failing_tasks(self.state, () if self.table is None else self.table.upkeep),
        )

    def _facts(self, listed: Listed, period: Period) -> CommitFacts | DeadLetterFacts | str | None:
        """The facts of a manifest; a message if its records cannot be read, None if it is not of the period."""
        (key, written_at), ledger, layout = listed, self.state.ledger, self.state.layout
        try:
            done = ledger.record(layout.done(key), Done)
            moment = moment_of(done.done_at, written_at)
            if not period.holds(moment):
                return None
            outcome = ledger.outcome(key)
            if isinstance(outcome, DeadLetter):
                letter = figures.DeadLetterLine(
                    outcome.manifest_id, outcome.reason, outcome.message, moment, redriven=None
                )
                return DeadLetterFacts(letter, is_clock_off=moment != done.done_at)
            accepted = ledger.accepted(key.id)
            first = outcome if outcome.generation == 1 else ledger.outcome_of(key, 1)
        except (RecordUnreadable, ObjectNotFound) as exc:
            return str(exc)
        if accepted is None:
            return f"{layout.accepted(key.id)}: there is no such record; expected that of its acceptance"
        with_source = bool(outcome.rejects_of) and self._is_of(period, ManifestKey(key.date, outcome.rejects_of))
        return commit_facts(
            moment,
            accepted,
            outcome,
            done,
            decided_at=first.decided_at,
            with_source=with_source,
            sla_seconds=self.sla_seconds,
        )

    def _is_of(self, period: Period, key: ManifestKey) -> bool:
        """Whether a manifest became visible in the period."""
        uri = self.state.layout.done(key)
        info = self.state.store.stat(uri)
        return info is not None and period.holds(
            moment_of(self.state.ledger.record(uri, Done).done_at, info.modified_at)
        )

    def _rejects(self, tallies: Tallies, *, sampled: int) -> tuple[figures.RejectReason, ...]:
        """All reasons, the most frequent first; the first `sampled` of them with samples."""
        left = [item for item in tallies.reasons.items() if item[1].lines > 0]
        ordered = sorted(left, key=lambda item: (-item[1].lines, item[0]))
        found = map_ordered(self._samples, ordered[:sampled])
        return tuple(
            figures.RejectReason(reason, tally.lines, tally.manifests, samples)
            for (reason, tally), samples in zip(ordered, chain(found, repeat(())), strict=False)
        )

    def _samples(self, item: tuple[str, ReasonTally]) -> tuple[figures.Sample, ...]:
        reason, manifests = item[0], list(item[1].newest)
        each = -(-SAMPLES // len(manifests))
        found = [sample for files in manifests for sample in samples_of(self.state.store, files, reason, each)]
        return tuple(found[:SAMPLES])
