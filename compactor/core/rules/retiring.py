"""Decides whether a date may be retired. No I/O."""

from dataclasses import dataclass

from compactor.core.text.formatting import count
from compactor.core.text.safe_text import quoted


@dataclass(frozen=True, slots=True)
class DateFacts:
    """What is known of a date.

    Attributes:
        is_closed: It has a summary.
        in_work: Manifests of it that wait or are open.
        unsummarised: Manifests of it that are done and in no summary.
        unreadable: What cannot be read of it, and was expected; empty if all can.
        dead_letters: Dead letters that were not redriven.
        quarantined: Quarantined files that nothing settled.
    """

    date: str
    is_closed: bool
    in_work: int = 0
    unsummarised: int = 0
    unreadable: str = ""
    dead_letters: int = 0
    quarantined: int = 0


def why_not_retired(facts: DateFacts, *, with_unsettled: bool) -> str:
    """Return why a date may not be retired, with the next action; empty if it may.

    Args:
        facts: What is known of the date.
        with_unsettled: Whether dead letters and quarantined files are no reason.
    """
    if facts.unreadable or facts.in_work:
        in_work = f"{count(facts.in_work, 'manifest')} in work; expected every job to finish them first"
        return facts.unreadable or in_work
    if not facts.is_closed:
        return "it is not closed; expected `compactor close` first"
    if facts.unsummarised:
        return f"{count(facts.unsummarised, 'manifest')} in no summary; expected `compactor close` first"
    if facts.dead_letters and not with_unsettled:
        what = f"{count(facts.dead_letters, 'dead letter')} not redriven"
        return f"{what}; expected `compactor redrive manifests --date {quoted(facts.date)}`, or --with-unsettled"
    if facts.quarantined and not with_unsettled:
        what = f"{count(facts.quarantined, 'quarantined file')} not settled"
        return f"{what}; expected `compactor redrive files --date {quoted(facts.date)}`, or --with-unsettled"
    return ""
