"""What a deployment is going to do, and its telling. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deploy.artefacts import Artefact
from deploy.change_sets import Change


@dataclass(frozen=True, slots=True)
class Plan:
    """One deployment.

    Attributes:
        account: Whose AWS account.
        region: Where.
        stack: Its name.
        bucket: Where artefacts are.
        parameters: By name.
        artefacts: All of them.
        missing: The keys of those that are to be uploaded.
    """

    account: str
    region: str
    stack: str
    bucket: str
    parameters: Mapping[str, str]
    artefacts: Sequence[Artefact]
    missing: frozenset[str]

    def lines(self) -> list[str]:
        """The plan, for people."""
        head = [f"Stack {self.stack}, account {self.account}, {self.region}", "", "Parameters"]
        width = max(map(len, self.parameters))
        named = [f"  {name:{width}}  {value or '(nothing)'}" for name, value in self.parameters.items()]
        files = [
            f"  {'upload' if each.key in self.missing else 'there '}  sha256 {each.sha256[:16]}  "
            f"{each.size_bytes:>12,} bytes  {each.path.name} -> s3://{self.bucket}/{each.key}"
            for each in self.artefacts
        ]
        return [*head, *named, "", "Artefacts", *files, ""]


def change_lines(changes: Sequence[Change]) -> list[str]:
    """The changes, for people; what is replaced or removed comes first."""
    ordered = sorted(changes, key=lambda each: (not _is_drastic(each), each.action, each.logical_id))
    return ["Changes", *(f"  {_word(each):9}{each.logical_id}  ({each.kind})" for each in ordered), ""]


def _is_drastic(change: Change) -> bool:
    return change.action == "Remove" or change.replacement in {"True", "Conditional"}


def _word(change: Change) -> str:
    if change.replacement == "True":
        return "REPLACE"
    if change.replacement == "Conditional":
        return "REPLACE?"
    return change.action.upper() if change.action == "Remove" else change.action.lower()
