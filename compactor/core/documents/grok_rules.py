"""What reads lines of text as records: the expression that a pattern of grok stands for, and the keys of its groups."""

from compactor.core.documents.document import Document


class GrokRules(Document):
    """Everything that decides what a line becomes. A commit keeps it, since the pattern of the settings may change.

    Attributes:
        regex: The expression, in which every name of the pattern has been replaced by what it stands for.
        keys: The key of each named group, in the order of the groups. Groups of which a line has one at most may share
            a key.
        max_steps: The most steps that matching a line may take.
    """

    regex: str
    keys: tuple[str, ...]
    max_steps: int
