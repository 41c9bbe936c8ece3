"""The result lines of `compactor compact`: figures, places, and the next action."""

from collections.abc import Iterable, Sequence

from compactor.api.compact_result import CompactResult, Hole
from compactor.cli.ui.failures import say
from compactor.cli.ui.output import SHOWN, Field, print_fields
from compactor.cli.ui.terminal import echo
from compactor.cli.ui.words import counted_words, misfit_fields, show_reading, show_steps, verified_steps
from compactor.core.documents.records import FileStatus
from compactor.core.inputs.source_places import in_words
from compactor.core.layout import canonical, folder
from compactor.core.rules.next_steps import left_out_cause, next_step
from compactor.core.text.formatting import by_name, count, duration, rate, size, tally
from compactor.core.text.safe_text import Suggestions, quoted
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ndjson.files.envelopes import Envelope
from compactor.ops.verify.report import VerifyResult
from compactor.settings.compact_paths import CompactPaths
from compactor.sources.candidates import SKIP_REASONS
from compactor.sources.plan import LeftOut, Plan

_WORDS = {
    "job_marker": "Spark marker",
    "folder_marker": "folder marker",
    "empty": "empty",
    "hidden": "hidden; --hidden includes them",
    "excluded": "excluded",
}
_EXPLAINED = SKIP_REASONS.keys() - {"unsettled"}
_QUARANTINED = ("replaced", "forbidden", "changed")


def skipped_fields(plan: Plan, paths: CompactPaths) -> list[Field]:
    """Skipped objects without data, by reason, each with an example."""
    reported = {each.reason for each in plan.left_out}
    found = [
        f"{_example(plan.examples.get(reason, ''), number, paths)} ({_WORDS.get(reason) or SKIP_REASONS[reason]})"
        for reason, number in sorted(plan.skipped.items())
        if reason not in reported
    ]
    return [("skipped", found)] if found else []


def left_out_fields(left_out: Sequence[LeftOut]) -> list[Field]:
    """Input that was left out and needs an operator: the first per reason."""
    fields: list[Field] = []
    for reason, those in _by_reason(left_out).items():
        name = "quarantined" if reason in _QUARANTINED else "not taken"
        fields.append((name, [f"{those[0].uri} ({_word(reason)}){_and_more(those)}", *_details(those[0])]))
    return fields


def envelope_fields(envelopes: Sequence[Envelope]) -> list[Field]:
    """The first file whose rows look like envelopes."""
    if not envelopes:
        return []
    more = f"; also {count(len(envelopes) - 1, 'more file')}" if len(envelopes) > 1 else ""
    return [("envelopes", [envelopes[0].uri, f"{envelopes[0].words}{more}"])]


def hole_fields(holes: Sequence[Hole]) -> list[Field]:
    """The first file that begins with NUL bytes."""
    if not holes:
        return []
    number = count(holes[0].bytes, "NUL byte")
    why = f"{number} before its first line: it was truncated under a writer that does not append"
    return [("skipped", [f"{holes[0].uri}{_and_more(holes)}", why])]


def field_lines(fields: Sequence[Field]) -> list[str]:
    """The same fields as one line each, without the names."""
    return [": ".join([value[0], *value[1:]]) for _, value in fields]


def left_out_moves(left_out: Sequence[LeftOut], suggest: Suggestions) -> list[str]:
    """The next actions for input that was left out."""
    return list(dict.fromkeys(next_step(left_out_cause(reason), suggest).text for reason in _by_reason(left_out)))


def _by_reason(left_out: Sequence[LeftOut]) -> dict[str, list[LeftOut]]:
    found: dict[str, list[LeftOut]] = {}
    for each in sorted(left_out, key=lambda each: each.uri):
        found.setdefault(each.reason, []).append(each)
    return found


def _details(first: LeftOut) -> list[str]:
    return [] if first.reason in _EXPLAINED else [first.detail]


def _word(reason: str) -> str:
    return SKIP_REASONS[reason] if reason in _EXPLAINED else reason


def _example(uri: str, number: int, paths: CompactPaths) -> str:
    name = canonical(uri)
    for place in paths.sources:
        name = name.removeprefix(canonical(folder(place.folder)))
    return name if number == 1 and name else f"{count(number, 'object')}, such as {name}"


_SHOWN = 5


def quarantined_lines(files: Iterable[QuarantinedFile]) -> list[str]:
    """A line per kind of file, and one for the kinds that are too many to show."""
    kinds: dict[str, list[QuarantinedFile]] = {}
    for each in files:
        kinds.setdefault(each.detail if each.status is FileStatus.NOT_NDJSON else each.status, []).append(each)
    lines = [_line(those) for those in list(kinds.values())[:_SHOWN]]
    left = sum(map(len, list(kinds.values())[_SHOWN:]))
    return [*lines, f"and {count(left, 'file')} of other kinds"] if left else lines


def _line(files: list[QuarantinedFile]) -> str:
    """The first of several files, and how many more there are."""
    first = files[0]
    why = first.detail.removeprefix(f"cannot read {first.uri}: ") or first.status
    why = f"replaced: {why}" if first.status == "replaced" else why
    return f"{first.uri} ({why}){_and_more(files)}"


_SETTLED = {
    "removed": "is gone, which settles it: it had no rows",
    "excluded": "is excluded, which settles it",
}


def show(result: CompactResult) -> None:
    """Print how the call ended."""
    if result.dry_run:
        print_fields([("would take", _new(result)), *_skipped(result), ("to", result.paths.output)])
        return
    fields: list[Field] = [
        ("from", in_words(result.paths.sources)),
        ("to", result.paths.output),
        ("new", _new(result)),
    ]
    fields += _skipped(result)
    if result.remembered:
        fields.append(("remembered", result.remembered))
    if result.resumed_manifests:
        fields.append(("resumed", f"{count(result.resumed_manifests, 'manifest')} from an earlier or parallel call"))
    if result.rebuilt:
        files = count(result.plan.replaced, "replaced file")
        rows = count(sum(each.rows for each in result.rebuilt), "row")
        fields.append(("rebuilt", f"{count(len(result.rebuilt), 'manifest')} with {rows}, for {files}"))
    run = result.work
    if run.committed or run.dead_lettered:
        fields.append(("rows", f"{run.records:,}"))
        fields.append(("output", f"{count(run.output_files, 'file')}, {size(run.output_bytes)}"))
        fields.append(("engine", str(result.engine_choice)))
        speed = f", {rate(run.input_bytes, result.seconds)} of input over the complete call" if run.input_bytes else ""
        fields.append(("took", f"{duration(result.seconds)}{speed}"))
    fields += [*envelope_fields(result.envelopes or ()), *hole_fields(result.holes or ())]
    if result.schema_file is not None:
        fields.append(("types", result.schema_file))
    if result.settled:
        more = len(result.settled) - SHOWN
        found = [f"{each.uri} {_SETTLED[each.dismissed]}" for each in result.settled[:SHOWN]]
        fields.append(("settled", found + ([f"and {more:,} more"] if more > 0 else [])))
    if result.verified is not None:
        fields += _verified(result.verified, result)
    print_fields(fields)
    _next_moves(result)


def _new(result: CompactResult) -> str:
    plan = result.plan
    grown = f" ({plan.grown:,} grown: only their new lines)" if plan.grown else ""
    new = f"{count(result.new_files, 'file')}, {size(result.new_bytes)}{grown}" if result.new_files else "nothing"
    if result.new_files and not plan.planned_before:
        return new
    if not (result.new_files or plan.planned_before or plan.left_out or result.rebuilt):
        return "nothing: SRC holds no files with data"
    counts = {"touched": plan.touched, "renamed": plan.renamed, "still being written": len(plan.unfinished)}
    moved = [f"{number:,} {name}" for name, number in counts.items() if number]
    also = f" ({', '.join(moved)})" if moved else ""
    return f"{new}; {count(plan.planned_before, 'file')} taken before{also}"


def _skipped(result: CompactResult) -> list[Field]:
    plan = result.plan
    fields = [*skipped_fields(plan, result.paths), *left_out_fields(_unrecorded(result))]
    if plan.misdated:
        files = f"{count(plan.misdated, 'file')} with impossible dates in the name, such as {plan.first_misdated}"
        fields.append(("wrong dates", [f"{files};", "the date of the last change is used"]))
    return fields


def _unrecorded(result: CompactResult) -> list[LeftOut]:
    """What was left out, without replaced files that are on record as quarantined."""
    on_record = {(each.uri, each.status) for each in result.quarantined_files}
    return [each for each in result.plan.left_out if (each.uri, each.reason) not in on_record]


def _verified(verification: VerifyResult, result: CompactResult) -> list[Field]:
    sign = "=" if verification.adds_up else "!="
    sums = tally(verification.rows, verification.rejected_lines, verification.blank_lines, verification.erased_lines)
    means = counted_words(verification)
    if result.deep:
        gone = f"; {verification.inputs_gone:,} no longer exist" if verification.inputs_gone else ""
        means = f"every value of {count(verification.inputs_compared, 'input file')} compared{gone}"
    sums = f"{count(verification.lines, 'line')} {sign} {sums}"
    name = "on record" if verification.discrepancies else "verified"
    fields: list[Field] = [(name, [sums, f"{means}, in this and all earlier calls"])]
    if verification.rejected_lines:
        fields.append(("rejects", [by_name(verification.rejects_by_reason), result.rejects_folder]))
    fields += misfit_fields(verification.misfits)
    return fields + quarantined_fields(verification)


def quarantined_fields(verification: VerifyResult) -> list[Field]:
    """Findings for an operator: the first of each kind."""
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
    """Text after the first of several."""
    return f" and {len(found) - 1:,} more" if len(found) > 1 else ""


def _next_moves(result: CompactResult) -> None:
    plan = result.plan
    for line in result.unfinished_lines:
        say(line)
    others = sum(each.reason == "replaced" for each in plan.left_out) + len(plan.replacements)
    if appended := max(0, plan.replaced - others):
        files = count(appended, "file")
        all_lines = "all its lines" if appended == 1 else "all their lines"
        say(f"{files} replaced since an earlier call: {all_lines} were added again; the earlier rows stay")
    if plan.held:
        say(f"{count(plan.held, 'file')} claimed by another planner: run this command again later")
    if result.backlog is not None and result.backlog.left_to_others:
        say(f"{count(result.backlog.left_to_others, 'manifest')} of other sources left to their own calls")
    if result.is_unfinished:
        left = "" if result.backlog is None else f"{count(result.backlog.manifests, 'manifest')} left; "
        say(f"not finished: {left}run this command again to continue")
        return
    if result.doubtful_envelopes:
        path = quoted(result.doubtful_envelopes[0].path)
        again = " ".join(["compactor compact", *map(quoted, result.sources), "<NEW_DST> --records", path])
        echo("", f"next        for a row per element: {again}")
        echo("            if one row per envelope is right, add --format ndjson: it is remembered")
    show_steps(left_out_moves(_unrecorded(result), result.suggest))
    if result.is_doubtful:
        _show_why(result)
    if result.verified is not None and result.verified.rows and not result.verified.discrepancies:
        _offer_to_read(result)


def _show_why(result: CompactResult) -> None:
    verified = result.verified
    if verified is not None and result.has_few_rows:
        say(result.few_rows_words)
    handle = result.paths.handle
    if verified is not None and not result.work.stuck and not verified.needs_operator:
        echo("", f"see why     compactor rejects {quoted(handle)}")
        return
    echo("", f"see why     compactor verify {quoted(handle)}{_also_rejects(result)}")
    steps = [result.suggest.call("trace", each) for each in list(result.work.stuck)[:1]]
    echo(*(f"next        {step}" for step in [*steps, *(verified_steps(verified, result.suggest) if verified else [])]))


def _also_rejects(result: CompactResult) -> str:
    verified = result.verified
    return "   (or: rejects)" if verified is not None and verified.rejected_lines else ""


def _offer_to_read(result: CompactResult) -> None:
    if result.outputs or result.rebuilt:
        show_reading(result.reading)
    if not result.needs_operator:
        others = "verify, rejects" if result.verified and result.verified.rejected_lines else "verify"
        echo(f"more        compactor status {quoted(result.paths.handle)}   (or: {others}, report)")
