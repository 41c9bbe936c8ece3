"""Reads what settled dead letters and quarantined files."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice

from compactor.ledger.state import State
from compactor.ops.redrive.settling.dead_letters import letter_fates
from compactor.ops.redrive.settling.quarantined_file import QuarantinedFile, settled_among_all
from compactor.ops.report.figures import DeadLetterLine

SHOWN_FILES = 50


def checked_letters(state: State, letters: Iterable[DeadLetterLine]) -> tuple[DeadLetterLine, ...]:
    """Dead letters in the order given, with what settled each where that can be read."""
    shown = list(letters)
    fates = letter_fates(state, [each.manifest_id for each in shown])
    found = ((each, fates[each.manifest_id]) for each in shown)
    return tuple(replace(each, redriven=fate.redriven, settled_by=fate.settled_by) for each, fate in found)


def checked_files(state: State, manifests: Iterable[Sequence[QuarantinedFile]]) -> tuple[QuarantinedFile, ...]:
    """The first `SHOWN_FILES` quarantined files of some manifests, with what settled each."""
    return tuple(settled_among_all(state, list(islice(chain.from_iterable(manifests), SHOWN_FILES))))
