"""The result of a call of `compact`, and how it ended."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compactor.core.documents.counts import are_few_rows
from compactor.core.errors import ExitCode
from compactor.core.results import as_document, printed
from compactor.core.text.formatting import count
from compactor.core.text.safe_text import Suggestions
from compactor.engines.engine import EngineName
from compactor.job.report import RunReport
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.backlog import Backlog
from compactor.ndjson.files.envelopes import Envelope
from compactor.ops.rebuild.rebuilder import Rebuilt
from compactor.ops.verify.report import VerifyResult
from compactor.settings.compact_paths import CompactPaths
from compactor.sources.plan import LeftOut, Plan
from compactor.wiring.engine_choice import Choice

_FEW_ROWS = "under half of the lines are rows; expected "
_JSON_LINES = "one JSON object a line; for lines of text, such as logs, take a new DST and --grok PATTERN"


@dataclass(frozen=True, slots=True)
class Hole:
    """NUL bytes at the beginning of a file, which were skipped."""

    uri: str  # the file
    bytes: int  # how many


@as_document(
    inlines={
        "plan": (
            *("planned_before", "touched", "renamed", "grown", "replaced", "misdated"),
            *("skipped", "left_out", "held", "held_until"),
        )
    },
    omits=("paths", "suggest", "outputs", "engine_choice", "is_planned", "is_format_given", "remembered", "reading"),
    shows=(
        *("source", "sources", "output", "settings_file", "new_files", "new_bytes", "engine", "engine_reason"),
        *("is_unfinished", "needs_operator"),
    ),
)
@printed(
    *("complete", "dry_run", "output", "new_files", "new_bytes", "rows", "rejected_lines", "outputs"),
    *("engine", "seconds", "problems"),
)
@dataclass(frozen=True, slots=True, repr=False)
class CompactResult:
    """The result of one call of `compact`. With `--dry-run` nothing is written.

    Figures cover this call; those of `verified` cover all calls for the same DST.

    Attributes:
        paths: The places of the call.
        rejects_folder: Folder of the rejects.
        suggest: How commands are suggested for DST.
        plan: The plan with all its figures.
        dry_run: Whether nothing was written.
        deep: Whether `--deep` was given.
        schema_file: Schema file with the types; None if all columns are strings.
        resumed_manifests: Manifests left by earlier calls; None in a dry run.
        envelopes: Files of this call whose rows look like envelopes, among those with the longest rows; None in a dry
            run.
        holes: Files of this call that begin with NUL bytes; None in a dry run.
        settled: Files that earlier calls quarantined and that no longer need an operator; None in a dry run.
        rebuilt: Manifests whose rows were rebuilt with replaced files; None in a dry run.
        run: The work of this call; None in a dry run.
        backlog: Remaining work; None in a dry run.
        verified: Verification of all data ever written to DST; None in a dry run and while unfinished.
        outputs: The Parquet files that became visible. Manifests in `rebuilt` have others.
        engine_choice: The engine that wrote rows, and why it was chosen; None if there was nothing to do.
        is_interrupted: Whether a signal ended this call.
        is_planned: Whether the call planned new files.
        is_format_given: Whether a user chose `input.format`, which defines a row.
        remembered: Settings of DST that this call changed, also for later calls.
        reading: How tools read all rows of DST, one line per tool.
        seconds: Duration of this call.
    """

    paths: CompactPaths
    rejects_folder: str
    suggest: Suggestions
    plan: Plan
    dry_run: bool
    deep: bool
    schema_file: str | None = None
    resumed_manifests: int | None = None
    envelopes: tuple[Envelope, ...] | None = None
    holes: tuple[Hole, ...] | None = None
    settled: tuple[QuarantinedFile, ...] | None = None
    rebuilt: tuple[Rebuilt, ...] | None = None
    run: RunReport | None = None
    backlog: Backlog | None = None
    verified: VerifyResult | None = None
    outputs: tuple[str, ...] = ()
    engine_choice: Choice[EngineName] | None = None
    is_interrupted: bool = False
    is_planned: bool = True
    is_format_given: bool = False
    remembered: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def source(self) -> str:
        """SRC, all sources in one text."""
        return self.paths.source

    @property
    def sources(self) -> list[str]:
        """Each SRC."""
        return [text for place in self.paths.sources for text in place.texts]

    @property
    def output(self) -> str:
        """DST, which contains only rows."""
        return self.paths.output

    @property
    def settings_file(self) -> str:
        """Settings file for all other commands."""
        return self.paths.settings_file

    @property
    def engine(self) -> str | None:
        """Engine that wrote the rows of this call; null if there was nothing to do."""
        return self.engine_choice.name if self.engine_choice is not None else None

    @property
    def engine_reason(self) -> str | None:
        """Why this engine was chosen; null if there was nothing to do."""
        return self.engine_choice.reason if self.engine_choice is not None else None

    @property
    def work(self) -> RunReport:
        """The work of this call; nothing in a dry run."""
        return self.run or RunReport()

    @property
    def new_files(self) -> int:
        """Number of files that this call planned, or would plan."""
        return self.plan.files

    @property
    def new_bytes(self) -> int:
        """Their stored size."""
        return self.plan.size_bytes

    @property
    def is_unfinished(self) -> bool:
        """Whether the same call would continue the work: the exit code is 1, or 130 if interrupted.

        A stuck manifest does not count: it waits for an operator.
        """
        is_left = self.backlog is not None and not self.backlog.is_empty
        if not self.is_planned:
            return True
        return bool(self.work.failures) or (is_left and (self.is_interrupted or not self.work.stuck))

    @property
    def doubtful_envelopes(self) -> tuple[Envelope, ...]:
        """Files whose rows are envelopes, unless a user chose the format."""
        return () if self.is_format_given else self.envelopes or ()

    @property
    def needs_operator(self) -> bool:
        """Whether an operator must act: the exit code is 3, unless unfinished.

        A manifest is stuck, input was left out, or counts do not add up. Also if SRC may be unsuitable: under half of
        the lines are rows, in this call or in total, or rows of this call are envelopes and the format was not chosen.
        """
        return bool(self.plan.left_out) or self.is_doubtful or bool(self.doubtful_envelopes)

    @property
    def is_doubtful(self) -> bool:
        """Whether a manifest is stuck, input was quarantined, counts do not add up, or few lines are rows."""
        verified = self.verified
        return bool(self.work.stuck) or (verified is not None and (verified.needs_operator or self.has_few_rows))

    @property
    def has_few_rows(self) -> bool:
        """Whether under half of the lines became rows, in this call or in all verified data."""
        verified = self.verified
        return are_few_rows(self.work.records, self.work.rejected_lines) or (
            verified is not None and are_few_rows(verified.rows, verified.rejected_lines)
        )

    @property
    def few_rows_words(self) -> str:
        """What the lines of the input should be."""
        is_text = self.verified is not None and "no_match" in self.verified.rejects_by_reason
        return _FEW_ROWS + ("lines that match --grok" if is_text else _JSON_LINES)

    @property
    def exit_code(self) -> ExitCode:
        """How `compactor compact` ends: 0; 1 if the same call continues the work; 3 if an operator must act."""
        if self.is_unfinished:
            return ExitCode.INTERRUPTED if self.is_interrupted else ExitCode.FAILED
        if self.needs_operator:
            return ExitCode.NEEDS_OPERATOR
        # A script that sees 0 may delete SRC, but another planner holds files that are in no manifest yet.
        return ExitCode.FAILED if self.plan.held and not self.dry_run else ExitCode.DONE

    @property
    def complete(self) -> bool:
        """Whether everything is done and verified, and no operator must act; never after a dry run.

        Each line of each compacted file is a row, a reject or blank.
        """
        return not self.exit_code and not self.dry_run

    @property
    def rows(self) -> int:
        """Rows that became visible."""
        return self.work.records

    @property
    def rejected_lines(self) -> int:
        """Lines that were rejected."""
        return self.work.rejected_lines

    @property
    def output_bytes(self) -> int:
        """The size of `outputs` in bytes."""
        return self.work.output_bytes

    @property
    def planned_before(self) -> int:
        """Files in manifests of earlier calls."""
        return self.plan.planned_before

    @property
    def skipped(self) -> Mapping[str, int]:
        """Files that are not input, by reason: hidden, empty, job markers."""
        return self.plan.skipped

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Files and folders that were left out and that an operator must know about."""
        return tuple(self.plan.left_out)

    @property
    def held(self) -> int:
        """Files claimed by another planner; a later call compacts them."""
        return self.plan.held

    @property
    def quarantined_files(self) -> tuple[QuarantinedFile, ...]:
        """Files of any call that could not be read, and are not settled."""
        return tuple(self.verified.open_files) if self.verified is not None else ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Unfinished work and tasks for an operator, one line each; empty if `exit_code` is 0."""
        return tuple(self._problems())

    @property
    def unfinished_lines(self) -> list[str]:
        """Unfinished work, one line per manifest."""
        failures, stuck = self.work.failures, self.work.stuck
        return [
            *(f"manifest {manifest_id} is not done: {error}" for manifest_id, error in failures.items()),
            *(f"manifest {manifest_id} waits for an operator: {fault}" for manifest_id, fault in stuck.items()),
        ]

    def _problems(self) -> Iterator[str]:
        yield from self.unfinished_lines
        if self.is_unfinished and not self.work.failures:
            yield f"not finished: {count(self.backlog.manifests if self.backlog is not None else 0, 'manifest')} left"
        if self.held and not self.dry_run:
            yield f"{count(self.held, 'file')} claimed by another planner"
        yield from (f"{each.uri}: {each.words}" for each in self.doubtful_envelopes)
        yield from (f"{each.uri}: {each.reason}: {each.detail}" for each in self.left_out)
        if self.verified is not None:
            yield from self.verified.problems
            if self.has_few_rows:
                yield self.few_rows_words
