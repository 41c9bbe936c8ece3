"""Creates a first settings file from three answers: input, output, and the compactor's own place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compactor.core.layout import folder, is_s3, is_text
from compactor.settings.places import overlap, parse_own_place, parse_place
from compactor.settings.settings import SECTIONS
from compactor.settings.writing.descriptions import comment, default_of
from compactor.settings.writing.toml import toml

_ON_AWS = {"metrics.sink": "cloudwatch", "metrics.environment": "dev"}
"""Values set in a file for S3, whose defaults suit a laptop."""

_AWS_NOTES = {
    "builder": 'a DynamoDB table (string key pk, time to live expires_at), or "@journal" for back-fills only',
    "control": "for the control plane: the Glue job, queues and topic that deploy/ creates",
}
_TITLE = "# Settings of the compactor. A commented key has its default; remove the # to set it."


@dataclass(frozen=True, slots=True)
class Answers:
    """The three answers, parsed."""

    inputs: tuple[str, ...]  # folders of the input
    output: str  # folder of the Parquet folders
    own: str  # folder in which manifests and state get a folder each

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
        The answers, or None if any is invalid; and a message for each invalid one, in the order of the questions.
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
    """Parse the answer for `input`, `output` or `state`; `others` are valid places of earlier answers by name.

    Raises:
        ValueError: The answer is invalid. The message says what was expected.
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
    """The text of a settings file: answered keys are set, every other key is commented with its default."""
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
