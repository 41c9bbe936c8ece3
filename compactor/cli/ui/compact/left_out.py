"""What `compact` shows of objects that are no data, or that need a person: not taken, or not the records they seem."""

from collections.abc import Sequence

from compactor.cli.ui.output import Field
from compactor.core.layout import canonical, folder
from compactor.core.rules.next_steps import left_out_cause, next_step
from compactor.core.text.formatting import count
from compactor.core.text.safe_text import Suggestions
from compactor.manifests.candidates import SKIP_REASONS
from compactor.manifests.plan import LeftOut, Plan
from compactor.ndjson.files.envelopes import Envelope
from compactor.settings.compact_paths import CompactPaths

_WORDS = {
    "job_marker": "Spark marker",
    "folder_marker": "folder marker",
    "empty": "empty",
    "hidden": "hidden; --hidden takes them",
    "excluded": "excluded",
}
_EXPLAINED = SKIP_REASONS.keys() - {"unsettled"}
_QUARANTINED = ("replaced", "forbidden", "changed")


def skipped_fields(plan: Plan, paths: CompactPaths) -> list[Field]:
    """The objects that are no data, by reason, each with an example."""
    told = {each.reason for each in plan.left_out}
    found = [
        f"{_example(plan.examples.get(reason, ''), number, paths)} ({_WORDS.get(reason) or SKIP_REASONS[reason]})"
        for reason, number in sorted(plan.skipped.items())
        if reason not in told
    ]
    return [("skipped", found)] if found else []


def left_out_fields(left_out: Sequence[LeftOut]) -> list[Field]:
    """What was not taken and needs a person: the first one of each reason."""
    fields: list[Field] = []
    for reason, those in _by_reason(left_out).items():
        name = "quarantined" if reason in _QUARANTINED else "not taken"
        more = f" and {len(those) - 1:,} more" if len(those) > 1 else ""
        fields.append((name, [f"{those[0].uri} ({_word(reason)}){more}", *_details(those[0])]))
    return fields


def envelope_fields(envelopes: Sequence[Envelope]) -> list[Field]:
    """The first file whose rows look like envelopes."""
    if not envelopes:
        return []
    more = f"; also {count(len(envelopes) - 1, 'more file')}" if len(envelopes) > 1 else ""
    return [("envelopes", [envelopes[0].uri, f"{envelopes[0].words}{more}"])]


def field_lines(fields: Sequence[Field]) -> list[str]:
    """The same as one line each, without the names."""
    return [": ".join([value[0], *value[1:]]) for _, value in fields]


def left_out_moves(left_out: Sequence[LeftOut], suggest: Suggestions) -> list[str]:
    """What to do about it."""
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
