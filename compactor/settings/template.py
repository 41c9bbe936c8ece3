"""A first settings file, made of three answers: where the input is, where output goes, what may be the compactor's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compactor.core.layout import folder, is_s3, is_text
from compactor.settings.descriptions import comment, default_of
from compactor.settings.places import overlap, parse_own_place, parse_place
from compactor.settings.settings import SECTIONS
from compactor.settings.toml import toml

_ON_AWS = {"metrics.sink": "cloudwatch", "metrics.environment": "dev"}
"""What a file for S3 sets, where the default is meant for a laptop."""

_AWS_NOTES = {
    "builder": 'a DynamoDB table (string key pk, time to live expires_at), or "@journal" for back-fills alone',
    "control": "for the control plane: the Glue job, queues and topic that deploy/ makes",
}
_TITLE = "# Settings of the compactor. A key behind # has its default; take the # away to set it."


@dataclass(frozen=True, slots=True)
class Answers:
    """Three places, parsed.

    Attributes:
        inputs: Folders that input is in.
        output: Where the Parquet folders go.
        own: Manifests and state get a folder each below it.
    """

    inputs: tuple[str, ...]
    output: str
    own: str

    @property
    def values(self) -> dict[str, object]:
        """The keys that are set, as `section.key`."""
        chosen: dict[str, object] = {
            "paths.manifests": f"{folder(self.own)}manifests",
            "paths.output": self.output,
            "paths.state": f"{folder(self.own)}state",
            "input.allowed_prefixes": list(self.inputs),
        }
        return {**chosen, **(_ON_AWS if self.is_on_s3 else {})}

    @property
    def is_on_s3(self) -> bool:
        """Whether what is written is on S3."""
        return is_s3(self.own)


def read_answers(inputs: Sequence[str], output: str, own: str) -> tuple[Answers | None, list[str]]:
    """Read three answers at once.

    Returns:
        The answers, if all of them will do; and what is wrong with each that will not, in the order of the questions.
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
    """The place that one answer names.

    Args:
        name: `input`, `output` or `state`.
        text: The answer.
        others: The places of the answers before it that will do, by name.

    Raises:
        ValueError: It will not do. The message says what was expected.
    """
    place = parse_place(text) if name == "input" else parse_own_place(text)
    if not is_text(place):
        raise ValueError("a name in UTF-8")
    for other in () if name == "input" else others.values():
        if overlap(place, other):
            raise ValueError(f"a place apart from {other}: neither inside the other")
    output = others.get("output")
    if name == "state" and output and is_s3(place) != is_s3(output):
        raise ValueError(f"a place on {'S3' if is_s3(output) else 'a local disk'}, as {output} is")
    return place


def draft(answers: Answers) -> str:
    """The text of a settings file: what was answered is set, every other key stands behind `#` with its default."""
    return "\n\n".join([_TITLE, *(_section(name, answers) for name in SECTIONS)]) + "\n"


def _section(name: str, answers: Answers) -> str:
    model = SECTIONS[name]
    lines = [f"[{name}]  # {(model.__doc__ or '').strip()}"]
    if answers.is_on_s3 and name in _AWS_NOTES:
        lines.append(f"# To do: {_AWS_NOTES[name]}")
    for key, field in model.model_fields.items():
        chosen = f"{name}.{key}" in answers.values
        value = answers.values[f"{name}.{key}"] if chosen else default_of(field)
        lines.append(f"{'' if chosen else '# '}{key} = {toml(value)}  # {comment(key, field, value)}")
    return "\n".join(lines)
