"""Notifies people through an SNS topic."""

from dataclasses import dataclass
from typing import Any

from compactor.adapters.aws.errors import translated

_SUBJECT_CHARACTERS = 100  # the limit of SNS, which takes only printable ASCII [SNS API]
_TEXT_CHARACTERS = 60_000  # even at four bytes each below the 256 KiB of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class SnsTopic:
    """One topic, with a boto3 client of SNS."""

    client: Any
    arn: str

    def tell(self, subject: str, text: str) -> None:
        with translated(f"topic {self.arn}"):
            self.client.publish(TopicArn=self.arn, Subject=_subject(subject), Message=text[:_TEXT_CHARACTERS])


def _subject(text: str) -> str:
    printable = "".join(letter if " " <= letter <= "~" else " " for letter in text)
    line = " ".join(printable.split()) or "compactor"
    return line if len(line) <= _SUBJECT_CHARACTERS else line[: _SUBJECT_CHARACTERS - 3] + "..."
