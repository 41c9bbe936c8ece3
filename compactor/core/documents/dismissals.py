"""The records of quarantined input that needs no person any more although no manifest has its lines."""

from typing import Literal

from pydantic import AwareDatetime

from compactor.core.documents.document import Document

How = Literal["accepted", "dismissed", "removed", "excluded"]
"""Why input is given up.

A person accepted that a range of a topic or stream is gone; a person dismissed a file; a file is gone that never had
rows, which counts only while it is gone; or the settings exclude a file, which counts only while they do.
"""


class Dismissal(Document):
    """What settles a quarantined input without its lines. Written once and never changed.

    Attributes:
        manifest_id: The manifest that quarantined it.
        uri: The input: a file, or a range of a topic.
        why: What the person said about it, or what was found.
        by: Who it was.
        unasked: Whether no broker was asked what is left of a range, as the person said that its cluster is gone.
    """

    manifest_id: str
    uri: str
    how: How
    why: str
    by: str
    dismissed_at: AwareDatetime
    unasked: bool = False

    @property
    def words(self) -> str:
        """Who gave it up, when and why."""
        did = {"accepted": "loss accepted", "removed": "found removed"}.get(self.how, self.how)
        unasked = ", without asking brokers" if self.unasked else ""
        return f"{did} by {self.by} at {self.dismissed_at:%Y-%m-%d %H:%M:%S} UTC{unasked}: {self.why}"
