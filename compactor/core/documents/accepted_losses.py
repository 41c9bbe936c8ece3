"""The records of input that is gone for good, and that a person does not expect back."""

from pydantic import AwareDatetime

from compactor.core.documents.records import Document


class AcceptedLoss(Document):
    """The acceptance of a quarantined input that is gone. Written once and never changed.

    Attributes:
        manifest_id: The manifest that quarantined it.
        uri: The input, such as a range of a topic.
        why: What the person said about it.
        by: Who it was.
        unasked: Whether no broker was asked what is left of it, as the person said that its cluster is gone for good.
    """

    manifest_id: str
    uri: str
    why: str
    by: str
    accepted_at: AwareDatetime
    unasked: bool = False
