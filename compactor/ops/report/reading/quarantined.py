"""Reads what settled dead letters and quarantined files."""

from collections.abc import Iterable
from dataclasses import replace

from compactor.ledger.state import State
from compactor.ops.redrive.settling.dead_letters import letter_fates
from compactor.ops.redrive.settling.quarantined_file import QuarantinedFile, settled_among_all
from compactor.ops.report.figures import DeadLetterLine

CHECKED_FILES = 5_000
"""Quarantined files of a period, the newest, of which is read what settled each."""


def checked_letters(state: State, letters: Iterable[DeadLetterLine]) -> tuple[DeadLetterLine, ...]:
    """Dead letters in the order given, with what settled each where that can be read."""
    shown = list(letters)
    fates = letter_fates(state, [each.manifest_id for each in shown])
    found = ((each, fates[each.manifest_id]) for each in shown)
    return tuple(replace(each, redriven=fate.redriven, settled_by=fate.settled_by) for each, fate in found)


def checked_files(state: State, files: Iterable[QuarantinedFile]) -> tuple[QuarantinedFile, ...]:
    """Quarantined files in the order given, with what settled each."""
    return tuple(settled_among_all(state, list(files)))
