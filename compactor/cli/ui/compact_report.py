"""The closing lines of `compactor compact`: figures, places, and the next action."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compactor.cli.failures import ExitCode, say
from compactor.cli.ui.left_out import left_out_fields, left_out_moves, skipped_fields
from compactor.cli.ui.misfits import misfit_fields
from compactor.cli.ui.output import Field, picked, print_fields
from compactor.cli.ui.terminal import echo
from compactor.core.formatting import by_name, count, duration, fates, rate, size
from compactor.core.layout import Layout, folder
from compactor.core.safe_text import quoted
from compactor.core.source_places import in_words
from compactor.job.run_report import RunReport
from compactor.ledger.backlog import Backlog
from compactor.manifests.planning import Plan
from compactor.ndjson.kind import READ_AS_JSON
from compactor.ops.verify.report import VerifyReport
from compactor.settings.compact_paths import CompactPaths
from compactor.wiring.engine_choice import EngineChoice

if TYPE_CHECKING:
    from compactor.ops.rebuild.rebuild_report import Rebuilt

_EXPANDED = set('"$`\\!')  # what a shell acts on within double quotes


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
    verification: VerifyReport | None = None  # what it verified; None if work is left
    engine: EngineChoice | None = None  # what wrote the rows; None if nothing was to be written
    seconds: float = 0.0  # from beginning to end
    schema_file: str | None = None  # the types of DST; None if all columns are strings

    @property
    def new_files(self) -> int:
        return sum(len(manifest.files) for manifest in self.plan.manifests)

    @property
    def is_unfinished(self) -> bool:
        """Whether a second call has work to continue. A stuck manifest is none: it waits for an operator."""
        is_left = self.left is not None and not self.left.is_empty
        if not self.is_planned:
            return True
        return bool(self.run.failures) or (is_left and (self.is_interrupted or not self.run.stuck))

    @property
    def needs_operator(self) -> bool:
        """Whether an operator has to act: a manifest is stuck, input was left out, or counts do not add up.

        Also if under half of the lines are rows, of this call or of all: SRC may not be what it seems.
        """
        return bool(self.plan.left_out) or self.is_doubtful

    @property
    def is_doubtful(self) -> bool:
        """Whether a manifest is stuck, input was quarantined, counts do not add up, or few lines are rows."""
        verified = self.verification
        return bool(self.run.stuck) or (verified is not None and (verified.needs_operator or self.has_few_rows))

    @property
    def has_few_rows(self) -> bool:
        """Whether under half of the lines became rows, of this call or of all that were verified."""
        rows, verified = self.run.records, self.verification
        return rows < self.run.rejected_lines or (verified is not None and verified.rows < verified.rejected_lines)

    @property
    def is_read_by_json(self) -> bool:
        """Whether a quarantined file would be read with `--format json`."""
        files = self.verification.quarantined_files if self.verification is not None else []
        return any(READ_AS_JSON in each.detail and not each.redriven for each in files)

    @property
    def exit_code(self) -> ExitCode:
        if self.is_unfinished:
            return ExitCode.INTERRUPTED if self.is_interrupted else ExitCode.FAILED
        if self.needs_operator:
            return ExitCode.NEEDS_OPERATOR
        # A script that sees 0 may delete SRC, but another planner holds files that are in no manifest yet.
        return ExitCode.FAILED if self.plan.held and not self.dry_run else ExitCode.DONE

    def document(self) -> dict[str, Any]:
        """The call as JSON. The backlog has the keys of `status`."""
        left, plan = self.left, self.plan
        return {
            "source": self.paths.source,
            "sources": [text for place in self.paths.sources for text in place.texts],
            "output": self.paths.output,
            "settings_file": self.paths.settings_file,
            "rejects_folder": self.layout.rejects_folder,
            "schema_file": self.schema_file,
            "dry_run": self.dry_run,
            "deep": self.is_deep,
            "new_files": self.new_files,
            "new_bytes": _planned_bytes(plan),
            **picked(plan, "planned_before", "touched", "renamed", "replaced", "misdated", "skipped"),
            **picked(plan, "left_out", "held", "held_until"),
            "resumed_manifests": None if self.dry_run else self.resumed,
            "rebuilt": None if self.dry_run else self.rebuilt,
            "run": None if self.dry_run else self.run,
            "backlog": left and {**picked(left, "manifests", "begun_manifests"), "input_bytes": left.input_bytes or 0},
            "engine": self.engine and self.engine.name,
            "engine_reason": self.engine and self.engine.reason,
            **picked(self, "is_interrupted", "is_unfinished", "needs_operator"),
            "verified": self.verification,
            "seconds": round(self.seconds, 3),
        }


def unfinished_lines(closing: Closing) -> list[str]:
    """What is not done, one line a manifest."""
    run = closing.run
    failed = [f"manifest {manifest_id} is not done: {error}" for manifest_id, error in run.failures.items()]
    return failed + [
        f"manifest {manifest_id} waits for an operator: {fault}" for manifest_id, fault in run.stuck.items()
    ]


def show(closing: Closing) -> None:
    """Print how the call ended."""
    if closing.dry_run:
        print_fields([("would take", _new(closing)), *_skipped(closing), ("to", closing.paths.output)])
        return
    fields: list[Field] = [
        ("from", in_words(closing.paths.sources)),
        ("to", closing.paths.output),
        ("new", _new(closing)),
    ]
    fields += _skipped(closing)
    if closing.resumed:
        fields.append(("resumed", f"{count(closing.resumed, 'manifest')} of an earlier call, or of another one"))
    if closing.rebuilt:
        files = count(closing.plan.replaced, "replaced file")
        rows = count(sum(each.rows for each in closing.rebuilt), "row")
        fields.append(("rebuilt", f"{count(len(closing.rebuilt), 'manifest')} with {rows}, for {files}"))
    run = closing.run
    if run.committed or run.dead_lettered:
        fields.append(("rows", f"{run.records:,}"))
        fields.append(("files", f"{count(run.output_files, 'file')}, {size(run.output_bytes)}"))
        fields.append(("engine", str(closing.engine)))
        fields.append(("took", f"{duration(closing.seconds)}, {rate(run.input_bytes, closing.seconds)}"))
    if closing.schema_file is not None:
        fields.append(("types", closing.schema_file))
    if closing.verification is not None:
        fields += _verified(closing.verification, closing)
    print_fields(fields)
    _next_moves(closing)


def _new(closing: Closing) -> str:
    plan = closing.plan
    new = f"{count(closing.new_files, 'file')}, {size(_planned_bytes(plan))}" if closing.new_files else "nothing"
    if closing.new_files and not plan.planned_before:
        return new
    moved = [f"{number:,} {name}" for name, number in (("touched", plan.touched), ("renamed", plan.renamed)) if number]
    also = f" ({', '.join(moved)})" if moved else ""
    return f"{new}; {count(plan.planned_before, 'file')} taken before{also}"


def _planned_bytes(plan: Plan) -> int:
    return sum(file.size_bytes or 0 for manifest in plan.manifests for file in manifest.files)


def _skipped(closing: Closing) -> list[Field]:
    plan = closing.plan
    fields = [*skipped_fields(plan, closing.paths), *left_out_fields(plan.left_out)]
    if plan.misdated:
        files = f"{count(plan.misdated, 'file')} named after dates that cannot be right, such as {plan.first_misdated}"
        fields.append(("wrong dates", [f"{files};", "the day of the last change counts"]))
    return fields


def _verified(verification: VerifyReport, closing: Closing) -> list[Field]:
    accounted = verification.rows + verification.rejected_lines + verification.blank_lines
    sign = "=" if accounted == verification.lines else "!="
    sums = fates(verification.rows, verification.rejected_lines, verification.blank_lines)
    means = "counted in the footers of all output files"
    if closing.is_deep:
        gone = f"; {verification.inputs_gone:,} no longer exist" if verification.inputs_gone else ""
        means = f"every value of {count(verification.inputs_compared, 'input file')} compared{gone}"
    sums = f"{count(verification.lines, 'line')} {sign} {sums}"
    fields: list[Field] = [("verified", [sums, f"{means}, of this call and all earlier ones"])]
    if verification.rejected_lines:
        fields.append(("rejects", [by_name(verification.rejects_by_reason), closing.layout.rejects_folder]))
    fields += misfit_fields(verification.misfits, verification.rescued_values)
    return fields + quarantined_fields(verification)


def quarantined_fields(verification: VerifyReport) -> list[Field]:
    """What an operator has to act on: the first of each kind."""
    fields: list[Field] = []
    if files := [each for each in verification.quarantined_files if not each.redriven]:
        fields.append(("quarantined", f"{files[0].uri} ({files[0].detail or files[0].status}){_and_more(files)}"))
    if letters := [each for each in verification.dead_letter_manifests if not each.redriven]:
        fields.append(("dead letters", f"{letters[0].manifest_id} ({letters[0].reason}){_and_more(letters)}"))
    if verification.discrepancies:
        found = verification.discrepancies[0]
        where = f"{found.where}{_and_more(verification.discrepancies)}"
        fields.append(("does not add up", [where, f"expected {found.expected}", f"found {found.found}"]))
    return fields


def _and_more(found: Sequence[object]) -> str:
    """What follows the first one of several."""
    return f" and {len(found) - 1:,} more" if len(found) > 1 else ""


def _next_moves(closing: Closing) -> None:
    plan = closing.plan
    for line in unfinished_lines(closing):
        say(line)
    others = sum(each.reason == "replaced" for each in plan.left_out) + len(plan.replacements)
    if appended := max(0, plan.replaced - others):
        files = count(appended, "file")
        say(f"{files} replaced since an earlier call: all their lines were taken again; the earlier rows stay")
    if plan.held:
        say(f"{count(plan.held, 'file')} held by another planner: run this command again later to take them")
    if closing.left is not None and closing.left.left_to_others:
        say(f"{count(closing.left.left_to_others, 'manifest')} of other sources left to the calls that planned them")
    if closing.is_unfinished:
        left = "" if closing.left is None else f"{count(closing.left.manifests, 'manifest')} left; "
        say(f"not finished: {left}run this command again to continue")
        return
    if plan.left_out:
        echo("", *(f"next        {move}" for move in left_out_moves(plan.left_out)))
    if closing.is_doubtful:
        _show_why(closing)
    elif not plan.left_out and closing.verification is not None and closing.verification.rows:
        _offer_to_read(closing)


def _show_why(closing: Closing) -> None:
    verified = closing.verification
    if verified is not None and closing.has_few_rows:
        say("under half of the lines are rows; expected NDJSON: one JSON object a line")
    handle = closing.paths.handle
    if verified is not None and not closing.run.stuck and not verified.needs_operator:
        echo("", f"see why     compactor rejects {quoted(handle)}")
        return
    echo("", f"see why     compactor verify {quoted(handle)}{_also_rejects(closing)}")
    if verified is not None and verified.discrepancies:
        echo(f"rebuild     compactor rebuild {quoted(handle)}   (makes the rows of lost or damaged files again)")
    if closing.run.stuck or (verified is not None and verified.has_quarantined):
        again = f"then run this command again{' with --format json' if closing.is_read_by_json else ''}"
        echo(f"redrive     compactor redrive files {quoted(handle)}   (or: redrive manifests), {again}")


def _also_rejects(closing: Closing) -> str:
    verified = closing.verification
    return "   (or: rejects)" if verified is not None and verified.rejected_lines else ""


def _offer_to_read(closing: Closing) -> None:
    glob = (folder(closing.paths.output) + "**/*.parquet").replace("'", "''")
    query = f"FROM read_parquet('{glob}', union_by_name = true) LIMIT 10"
    # A query has single quotes, so double ones read better where a shell expands nothing in them.
    word = quoted(query) if _EXPANDED & set(query) or not query.isprintable() else f'"{query}"'
    echo("", f"read it     duckdb -c {word}")
    others = "verify, rejects" if closing.verification and closing.verification.rejected_lines else "verify"
    echo(f"more        compactor status {quoted(closing.paths.handle)}   (or: {others}, schema, report)")
