"""Reads whether dead letters were redriven, and quarantined files are settled."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice

from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State
from compactor.ops.redrive.quarantined_file import QuarantinedFile, settled_among_all
from compactor.ops.redrive.redrive_log import RedriveLog, was_redriven
from compactor.ops.report.figures import DeadLetterLine

SHOWN_FILES = 50


def checked_letters(letters: Iterable[DeadLetterLine], redrive_log: RedriveLog) -> tuple[DeadLetterLine, ...]:
    """Dead letters in the order given, with whether they were redriven where that can be read."""

    def checked(letter: DeadLetterLine) -> DeadLetterLine:
        try:
            entries = redrive_log.entries_about(letter.manifest_id)
        except (StuckError, ObjectNotFound):
            return letter
        return replace(letter, redriven=was_redriven(letter.manifest_id, entries))

    return tuple(map_ordered(checked, letters))


def checked_files(state: State, manifests: Iterable[Sequence[QuarantinedFile]]) -> tuple[QuarantinedFile, ...]:
    """The first `SHOWN_FILES` quarantined files of some manifests, with what settled each."""
    return tuple(settled_among_all(state, list(islice(chain.from_iterable(manifests), SHOWN_FILES))))
