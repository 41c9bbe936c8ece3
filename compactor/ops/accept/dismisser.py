"""Puts on record that quarantined files are given up: by a person, or because they are gone or excluded by now."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from compactor.core.documents.records import How
from compactor.core.layout import canonical
from compactor.core.logs.names import is_log
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.accounts.settling import is_gone
from compactor.ledger.change_log import give_up
from compactor.ledger.state import State
from compactor.ops.accept.acceptor import NotLost
from compactor.ops.redrive.scan import find_redrivable


@dataclass(slots=True)
class Dismissible:
    """What of some named files can be dismissed, or was. With `--dry-run` nothing is written."""

    dismissed: list[QuarantinedFile] = field(default_factory=list)  # quarantined versions that are given up
    refused: list[NotLost] = field(default_factory=list)  # files that are not quarantined, without a manifest
    why: str = ""  # why the files are not expected any more
    dry_run: bool = False  # whether nothing was written


@dataclass(frozen=True, slots=True, kw_only=True)
class Dismisser:
    """Dismisses quarantined files. Ranges of topics and streams are no matter of it: `Acceptor` has these.

    Attributes:
        by: Who dismisses.
    """

    state: State
    by: str

    def find(self, uris: Sequence[str]) -> Dismissible:
        """Find the quarantined versions of some files. Writes nothing."""
        found, scan = Dismissible(), find_redrivable(self.state, Scope("files"))
        open_files: dict[str, list[QuarantinedFile]] = {}
        for source in scan.sources:
            for file in source.files:
                if not is_log(file.uri):
                    open_files.setdefault(canonical(file.uri), []).append(file)
        for uri in dict.fromkeys(uris):
            versions = open_files.get(canonical(uri), [])
            found.dismissed += versions
            found.refused += [] if versions else [NotLost("", uri, "it is not quarantined")]
        return found

    def dismiss(self, files: Iterable[QuarantinedFile], how: How, why: str) -> list[QuarantinedFile]:
        """Put on record that these are given up, and return them so. What was dismissed meanwhile stays as it is."""
        return [self._dismissed(each, how, why) for each in files]

    def _dismissed(self, file: QuarantinedFile, how: How, why: str) -> QuarantinedFile:
        given_up = give_up(self.state, file.manifest_id, file.uri, how, why, by=self.by)
        return replace(file, settled_by=given_up.words, dismissed=how)

    def removed(
        self, files: Iterable[QuarantinedFile], with_rows: Callable[[Collection[str]], Collection[str]]
    ) -> list[QuarantinedFile]:
        """Dismiss those of some files that are gone and never had rows; returns these.

        Args:
            files: Quarantined versions that are not settled.
            with_rows: Finds which of some files, by canonical URI, have rows of any version.
        """
        gone = [each for each in files if is_gone(self.state, each.uri, otherwise=False)]
        kept = with_rows({canonical(each.uri) for each in gone}) if gone else ()
        without = (each for each in gone if canonical(each.uri) not in kept)
        return self.dismiss(without, "removed", "it is gone and had no rows")
