"""Describes settings in words, and creates a first settings file from three answers."""

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic.fields import FieldInfo

from compactor.core.layout import folder, is_s3, is_text
from compactor.settings.places import overlap, parse_own_place, parse_place
from compactor.settings.settings import SECTIONS
from compactor.settings.toml import toml
from compactor.settings.validation import Expected

UNITS = (
    *("bytes", "seconds", "hours", "days", "manifests", "columns", "characters", "lines", "files", "attempts"),
    *("shards", "snapshots", "partitions"),
)
"""Units of numbers. Each numeric key contains one of these words."""

_YEAR_SECONDS = 366 * 86_400  # rounded up, so that ten years always fit
_BINARY = ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def default_of(field: FieldInfo) -> Any:
    """The default of a key that has one."""
    return field.get_default(call_default_factory=True)


def unit(key: str, field: FieldInfo) -> str:
    """The unit of a numeric key, taken from its name; empty for other keys."""
    if field.annotation not in {int, float}:
        return ""
    return next((word for word in reversed(key.split("_")) if word in UNITS), "")


def type_in_words(key: str, field: FieldInfo) -> str:
    """Type, choices and bounds of a key, such as `1 to 1,000` or `> 0, up to 316,224,000 (10 years)`."""
    said = next((each.words for each in field.metadata if isinstance(each, Expected)), None)
    kind: Any = typing.get_origin(field.annotation) or field.annotation
    if kind is Literal:
        *choices, last = (f"`{choice}`" for choice in typing.get_args(field.annotation))
        return f"{', '.join(choices)} or {last}"
    if kind is bool:
        return "true or false"
    if kind in {int, float}:
        return _bounds(key, field)
    return said or "text"


def comment(key: str, field: FieldInfo, value: Any) -> str:
    """The comment for a key in a settings file: its description, preceded by the value in MiB or GiB for bytes."""
    if unit(key, field) == "bytes" and (short := binary_size(value)):
        return f"{short}: {field.description}"
    return str(field.description)


def binary_size(length_bytes: int) -> str:
    """A multiple of a binary unit, such as `128 MiB`; empty for other numbers of bytes."""
    return next(
        (f"{length_bytes // each} {name}" for each, name in _BINARY if length_bytes and not length_bytes % each), ""
    )


def _bounds(key: str, field: FieldInfo) -> str:
    """The bounds, which pydantic keeps as annotations named `ge`, `gt` and `le`."""
    bounds = [(name, getattr(each, name, None)) for each in field.metadata for name in ("ge", "gt", "le")]
    found = {name: bound for name, bound in bounds if bound is not None}
    shown = {
        name: binary_size(bound) if unit(key, field) == "bytes" and bound > 1 else f"{bound:,}"
        for name, bound in found.items()
    }
    years = found["le"] / _YEAR_SECONDS if unit(key, field) == "seconds" else 0
    highest = shown["le"] + (f" ({years:g} years)" if years >= 1 else "")
    return f"{shown['ge']} to {highest}" if "ge" in shown else f"> {shown['gt']}, up to {highest}"


_ON_AWS = {"metrics.sink": "cloudwatch", "metrics.environment": "dev"}
"""Values set in a file for S3, whose defaults suit a laptop."""

_AWS_NOTES = {
    "builder": 'claims: a DynamoDB table (string key pk, time to live expires_at), or "@journal" for back-fills only',
    "control": "for the control plane: the Glue job, the queues and the topic that deploy/ creates",
}
_TITLE = "# Settings of the compactor. A commented key has its default; remove the # to set it."


@dataclass(frozen=True, slots=True)
class Answers:
    """The three answers, parsed."""

    inputs: tuple[str, ...]  # folders of the input
    output: str  # folder of the Parquet folders
    own: str  # folder with one folder each for manifests and state

    @property
    def values(self) -> dict[str, object]:
        """The keys to set, as `section.key`."""
        chosen: dict[str, object] = {
            "paths.manifests": f"{folder(self.own)}manifests",
            "paths.output": self.output,
            "paths.state": f"{folder(self.own)}state",
            "input.allowed_prefixes": list(self.inputs),
        }
        return {**chosen, **(_ON_AWS if self.is_on_s3 else {})}

    @property
    def is_on_s3(self) -> bool:
        """Whether the compactor writes to S3."""
        return is_s3(self.own)


def read_answers(inputs: Sequence[str], output: str, own: str) -> tuple[Answers | None, list[str]]:
    """Parse all answers.

    Returns:
        The answers, or None if any is invalid; and a message for each invalid one, in question order.
    """
    faults: list[str] = []
    right: dict[str, str] = {}
    for name, text in [*(("input", each) for each in inputs), ("output", output), ("state", own)]:
        try:
            place = read_answer(name, text, right)
            right[f"input {place}" if name == "input" else name] = place
        except ValueError as exc:
            faults.append(f"--{name} {text}: expected {exc}")
    if faults:
        return None, faults
    return Answers(tuple(map(parse_place, inputs)), right["output"], right["state"]), []


def read_answer(name: str, text: str, others: Mapping[str, str]) -> str:
    """Parse the answer for `input`, `output` or `state`; `others` has valid places of earlier answers, by name.

    Raises:
        ValueError: The answer is invalid. The message describes the expected form.
    """
    place = parse_place(text) if name == "input" else parse_own_place(text)
    if not is_text(place):
        raise ValueError("a name in UTF-8")
    for other in () if name == "input" else others.values():
        if overlap(place, other):
            raise ValueError(f"a place that does not overlap {other}")
    output = others.get("output")
    if name == "state" and output and is_s3(place) != is_s3(output):
        raise ValueError(f"a place on {'S3' if is_s3(output) else 'a local disk'}, like {output}")
    return place


def draft(answers: Answers) -> str:
    """Draft a settings file: answered keys are set, every other key is commented with its default."""
    return "\n\n".join([_TITLE, *(_section(name, answers) for name in SECTIONS)]) + "\n"


def _section(name: str, answers: Answers) -> str:
    model = SECTIONS[name]
    lines = [f"[{name}]  # {(model.__doc__ or '').strip()}"]
    if answers.is_on_s3 and name in _AWS_NOTES:
        lines.append(f"# To set: {_AWS_NOTES[name]}")
    for key, field in model.model_fields.items():
        chosen = f"{name}.{key}" in answers.values
        value = answers.values[f"{name}.{key}"] if chosen else default_of(field)
        lines.append(f"{'' if chosen else '# '}{key} = {toml(value)}  # {comment(key, field, value)}")
    return "\n".join(lines)
