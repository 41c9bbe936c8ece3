"""Tells people through a topic of SNS."""

from typing import Any

from compactor.adapters.aws.errors import translated

_SUBJECT_CHARACTERS = 100  # the most that SNS takes, and only printable ASCII [SNS API]
_TEXT_CHARACTERS = 60_000  # at four bytes each still below the 256 KiB of a message


class SnsTopic:
    """One topic.

    Args:
        client: A boto3 client of SNS.
        arn: The topic's.
    """

    def __init__(self, client: Any, arn: str) -> None:
        self._client = client
        self._arn = arn

    def tell(self, subject: str, text: str) -> None:
        with translated(f"topic {self._arn}"):
            self._client.publish(TopicArn=self._arn, Subject=_subject(subject), Message=text[:_TEXT_CHARACTERS])


def _subject(text: str) -> str:
    printable = "".join(letter if " " <= letter <= "~" else " " for letter in text)
    line = " ".join(printable.split()) or "compactor"
    return line if len(line) <= _SUBJECT_CHARACTERS else line[: _SUBJECT_CHARACTERS - 3] + "..."
