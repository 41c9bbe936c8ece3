"""The closing lines of `compactor compact`: figures, places, and the next action."""

from collections.abc import Sequence
from typing import Any

from compactor.api.compact_call.closing import Closing, unfinished_lines
from compactor.api.compact_call.problems import FEW_ROWS
from compactor.cli.ui.common.misfits import misfit_fields
from compactor.cli.ui.common.reading import show_reading
from compactor.cli.ui.common.verified import counted_words, verified_document
from compactor.cli.ui.compact.left_out import envelope_fields, left_out_fields, left_out_moves, skipped_fields
from compactor.cli.ui.compact.quarantined import quarantined_lines
from compactor.cli.ui.failures import say
from compactor.cli.ui.lists import SHOWN
from compactor.cli.ui.output import Field, picked, print_fields
from compactor.cli.ui.terminal import echo
from compactor.core.inputs.source_places import in_words
from compactor.core.rules.next_steps import quarantined_steps
from compactor.core.text.formatting import by_name, count, duration, fates, rate, size
from compactor.core.text.safe_text import quoted
from compactor.ops.verify.report import VerifyReport

_SETTLED = {
    "removed": "was removed and is settled: it had no rows",
    "excluded": "is excluded and is settled",
}


def document(closing: Closing) -> dict[str, Any]:
    """A call as JSON. The backlog has the keys of `status`."""
    left, plan = closing.left, closing.plan
    return {
        "source": closing.paths.source,
        "sources": [text for place in closing.paths.sources for text in place.texts],
        "output": closing.paths.output,
        "settings_file": closing.paths.settings_file,
        "rejects_folder": closing.layout.rejects_folder,
        "schema_file": closing.schema_file,
        "dry_run": closing.dry_run,
        "deep": closing.is_deep,
        "new_files": closing.new_files,
        "new_bytes": closing.new_bytes,
        **picked(plan, "planned_before", "touched", "renamed", "grown", "replaced", "misdated", "skipped"),
        **picked(plan, "left_out", "held", "held_until"),
        "resumed_manifests": None if closing.dry_run else closing.resumed,
        "envelopes": None if closing.dry_run else closing.envelopes,
        "settled": None if closing.dry_run else closing.settled,
        "rebuilt": None if closing.dry_run else closing.rebuilt,
        "run": None if closing.dry_run else closing.run,
        "backlog": left and {**picked(left, "manifests", "begun_manifests"), "input_bytes": left.input_bytes or 0},
        "engine": closing.engine and closing.engine.name,
        "engine_reason": closing.engine and closing.engine.reason,
        **picked(closing, "is_interrupted", "is_unfinished", "needs_operator"),
        "verified": closing.verification and verified_document(closing.verification),
        "seconds": round(closing.seconds, 3),
    }


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
    if closing.remembered:
        fields.append(("remembered", closing.remembered))
    if closing.resumed:
        fields.append(("resumed", f"{count(closing.resumed, 'manifest')} of an earlier call, or of another one"))
    if closing.rebuilt:
        files = count(closing.plan.replaced, "replaced file")
        rows = count(sum(each.rows for each in closing.rebuilt), "row")
        fields.append(("rebuilt", f"{count(len(closing.rebuilt), 'manifest')} with {rows}, for {files}"))
    run = closing.run
    if run.committed or run.dead_lettered:
        fields.append(("rows", f"{run.records:,}"))
        fields.append(("output", f"{count(run.output_files, 'file')}, {size(run.output_bytes)}"))
        fields.append(("engine", str(closing.engine)))
        speed = f", {rate(run.input_bytes, closing.seconds)} of input over the whole call" if run.input_bytes else ""
        fields.append(("took", f"{duration(closing.seconds)}{speed}"))
    fields += envelope_fields(closing.envelopes)
    if closing.schema_file is not None:
        fields.append(("types", closing.schema_file))
    if closing.settled:
        more = len(closing.settled) - SHOWN
        found = [f"{each.uri} {_SETTLED[each.dismissed]}" for each in closing.settled[:SHOWN]]
        fields.append(("settled", found + ([f"and {more:,} more"] if more > 0 else [])))
    if closing.verification is not None:
        fields += _verified(closing.verification, closing)
    print_fields(fields)
    _next_moves(closing)


def _new(closing: Closing) -> str:
    plan = closing.plan
    grown = f" ({plan.grown:,} grown: the lines behind those taken before)" if plan.grown else ""
    new = f"{count(closing.new_files, 'file')}, {size(closing.new_bytes)}{grown}" if closing.new_files else "nothing"
    if closing.new_files and not plan.planned_before:
        return new
    moved = [f"{number:,} {name}" for name, number in (("touched", plan.touched), ("renamed", plan.renamed)) if number]
    also = f" ({', '.join(moved)})" if moved else ""
    return f"{new}; {count(plan.planned_before, 'file')} taken before{also}"


def _skipped(closing: Closing) -> list[Field]:
    plan = closing.plan
    fields = [*skipped_fields(plan, closing.paths), *left_out_fields(plan.left_out)]
    if plan.misdated:
        files = f"{count(plan.misdated, 'file')} named after dates that cannot be right, such as {plan.first_misdated}"
        fields.append(("wrong dates", [f"{files};", "the day of the last change counts"]))
    return fields


def _verified(verification: VerifyReport, closing: Closing) -> list[Field]:
    sign = "=" if verification.adds_up else "!="
    sums = fates(verification.rows, verification.rejected_lines, verification.blank_lines, verification.erased_lines)
    means = counted_words(verification)
    if closing.is_deep:
        gone = f"; {verification.inputs_gone:,} no longer exist" if verification.inputs_gone else ""
        means = f"every value of {count(verification.inputs_compared, 'input file')} compared{gone}"
    sums = f"{count(verification.lines, 'line')} {sign} {sums}"
    name = "on record" if verification.discrepancies else "verified"
    fields: list[Field] = [(name, [sums, f"{means}, of this call and all earlier ones"])]
    if verification.rejected_lines:
        fields.append(("rejects", [by_name(verification.rejects_by_reason), closing.layout.rejects_folder]))
    fields += misfit_fields(verification.misfits)
    return fields + quarantined_fields(verification)


def quarantined_fields(verification: VerifyReport) -> list[Field]:
    """What an operator has to act on: the first of each kind."""
    fields: list[Field] = []
    if files := verification.open_files:
        fields.append(("quarantined", quarantined_lines(files)))
    if letters := verification.open_letters:
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
        all_lines = "all its lines" if appended == 1 else "all their lines"
        say(f"{files} replaced since an earlier call: {all_lines} were taken again; the earlier rows stay")
    if plan.held:
        say(f"{count(plan.held, 'file')} held by another planner: run this command again later to take them")
    if closing.left is not None and closing.left.left_to_others:
        say(f"{count(closing.left.left_to_others, 'manifest')} of other sources left to the calls that planned them")
    if closing.is_unfinished:
        left = "" if closing.left is None else f"{count(closing.left.manifests, 'manifest')} left; "
        say(f"not finished: {left}run this command again to continue")
        return
    if closing.doubtful_envelopes:
        key = closing.doubtful_envelopes[0].key
        echo("", f"next        split envelopes into lines first, as in: jq -c '.{key}[]' FILE > FILE.ndjson")
        echo("            if one row for each is right, add --format ndjson: it is remembered")
    if plan.left_out:
        echo("", *(f"next        {move}" for move in left_out_moves(plan.left_out, closing.paths.suggestions)))
    if closing.is_doubtful:
        _show_why(closing)
    if closing.verification is not None and closing.verification.rows and not closing.verification.discrepancies:
        _offer_to_read(closing)


def _show_why(closing: Closing) -> None:
    verified = closing.verification
    if verified is not None and closing.has_few_rows:
        say(FEW_ROWS)
    handle = closing.paths.handle
    if verified is not None and not closing.run.stuck and not verified.needs_operator:
        echo("", f"see why     compactor rejects {quoted(handle)}")
        return
    echo("", f"see why     compactor verify {quoted(handle)}{_also_rejects(closing)}")
    if verified is not None and verified.discrepancies:
        echo(f"rebuild     compactor rebuild {quoted(handle)}   (makes the rows of lost or damaged files again)")
    if closing.run.stuck or (verified is not None and verified.open_letters):
        echo(f"redrive     compactor redrive manifests {quoted(handle)}   (then run this command again)")
    if verified is not None and (causes := verified.open_causes):
        echo(*(f"next        {step}" for step in quarantined_steps(causes, closing.paths.suggestions)))


def _also_rejects(closing: Closing) -> str:
    verified = closing.verification
    return "   (or: rejects)" if verified is not None and verified.rejected_lines else ""


def _offer_to_read(closing: Closing) -> None:
    show_reading(closing.reading)
    if not closing.needs_operator:
        others = "verify, rejects" if closing.verification and closing.verification.rejected_lines else "verify"
        echo(f"more        compactor status {quoted(closing.paths.handle)}   (or: {others}, schema, report)")
