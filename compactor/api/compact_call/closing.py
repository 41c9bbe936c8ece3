"""How a call of `compact` ended."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compactor.core.documents.closed_dates import are_few_rows
from compactor.core.errors import ExitCode
from compactor.core.layout import Layout
from compactor.job.report import RunReport
from compactor.ledger.backlog import Backlog
from compactor.manifests.plan import Plan
from compactor.ndjson.files.envelopes import Envelope
from compactor.ops.verify.report import VerifyReport
from compactor.settings.compact_paths import CompactPaths
from compactor.wiring.engine_choice import EngineChoice

if TYPE_CHECKING:
    from compactor.ledger.accounts.account import QuarantinedFile
    from compactor.ops.rebuild.rebuild_report import Rebuilt


@dataclass(slots=True)
class Closing:
    """How a call ended."""

    paths: CompactPaths
    layout: Layout
    plan: Plan
    dry_run: bool
    is_deep: bool
    resumed: int = 0  # how many manifests of earlier calls it found waiting
    rebuilt: "list[Rebuilt]" = field(default_factory=list)  # manifests that were made again with replaced files
    run: RunReport = field(default_factory=RunReport)
    is_interrupted: bool = False  # a signal stopped it
    is_planned: bool = True  # whether it got as far as new files
    left: Backlog | None = None  # what still waits; None in a dry run, which does not check
    settled: "list[QuarantinedFile]" = field(default_factory=list)  # what earlier calls quarantined and it settled
    verification: VerifyReport | None = None  # what it verified; None if work is left
    engine: EngineChoice | None = None  # what wrote the rows; None if nothing was to be written
    seconds: float = 0.0  # from beginning to end
    remembered: list[str] = field(default_factory=list)  # settings of DST that it changed, for later calls, too
    schema_file: str | None = None  # the types of DST; None if all columns are strings
    outputs: list[str] = field(default_factory=list)  # the Parquet files that it made visible
    reading: Sequence[str] = ()  # how tools read all rows of DST
    envelopes: list[Envelope] = field(default_factory=list)  # files of this call whose rows are envelopes
    is_format_given: bool = False  # whether someone chose `input.format`, and so what one row is

    @property
    def new_files(self) -> int:
        return self.plan.files

    @property
    def new_bytes(self) -> int:
        return self.plan.size_bytes

    @property
    def is_unfinished(self) -> bool:
        """Whether a second call has work to continue. A stuck manifest is none: it waits for an operator."""
        is_left = self.left is not None and not self.left.is_empty
        if not self.is_planned:
            return True
        return bool(self.run.failures) or (is_left and (self.is_interrupted or not self.run.stuck))

    @property
    def doubtful_envelopes(self) -> list[Envelope]:
        """Files whose rows are envelopes, unless someone chose what one row is."""
        return [] if self.is_format_given else self.envelopes

    @property
    def needs_operator(self) -> bool:
        """Whether an operator has to act: a manifest is stuck, input was left out, or counts do not add up.

        Also if SRC may not be what it seems: under half of the lines are rows, of this call or of all, or rows of this
        call are envelopes and the format was not chosen.
        """
        return bool(self.plan.left_out) or self.is_doubtful or bool(self.doubtful_envelopes)

    @property
    def is_doubtful(self) -> bool:
        """Whether a manifest is stuck, input was quarantined, counts do not add up, or few lines are rows."""
        verified = self.verification
        return bool(self.run.stuck) or (verified is not None and (verified.needs_operator or self.has_few_rows))

    @property
    def has_few_rows(self) -> bool:
        """Whether under half of the lines became rows, of this call or of all that were verified."""
        verified = self.verification
        return are_few_rows(self.run.records, self.run.rejected_lines) or (
            verified is not None and are_few_rows(verified.rows, verified.rejected_lines)
        )

    @property
    def exit_code(self) -> ExitCode:
        if self.is_unfinished:
            return ExitCode.INTERRUPTED if self.is_interrupted else ExitCode.FAILED
        if self.needs_operator:
            return ExitCode.NEEDS_OPERATOR
        # A script that sees 0 may delete SRC, but another planner holds files that are in no manifest yet.
        return ExitCode.FAILED if self.plan.held and not self.dry_run else ExitCode.DONE


def unfinished_lines(closing: Closing) -> list[str]:
    """What is not done, one line a manifest."""
    run = closing.run
    failed = [f"manifest {manifest_id} is not done: {error}" for manifest_id, error in run.failures.items()]
    return failed + [
        f"manifest {manifest_id} waits for an operator: {fault}" for manifest_id, fault in run.stuck.items()
    ]
