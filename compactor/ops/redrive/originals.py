"""Reads the manifest of a dead letter again, by the settings of today."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from compactor.core.errors import ManifestError, ObjectNotFound
from compactor.core.manifest import Manifest
from compactor.core.manifest_parsing import parse_manifest
from compactor.core.records import Commit, DeadLetter
from compactor.ledger.state import State


@dataclass(frozen=True, kw_only=True)
class Originals:
    """Reads the originals of dead letters."""

    state: State
    allowed_prefixes: Sequence[str]

    def of(self, letter: DeadLetter) -> Manifest:
        """The original of a dead letter.

        Raises:
            ManifestError: It is still wrong.
        """
        accepted = self.state.ledger.accepted(letter.manifest_id)
        if accepted is not None and accepted.manifest is not None:
            data = accepted.manifest.to_json()
        else:
            data = self._kept(letter)
        return parse_manifest(
            data,
            uri=letter.source_uri,
            # Where the original has no date in it, it keeps the date that it got as a dead letter.
            modified_at=datetime.fromisoformat(letter.date).replace(tzinfo=UTC),
            allowed_prefixes=self.allowed_prefixes,
            redriven_folder=self.state.layout.redriven_folder,
            rules=self.state.rules,
        )

    def _kept(self, letter: DeadLetter) -> bytes:
        uri = self.state.layout.failed_manifest(letter.manifest_id)
        info = self.state.store.stat(uri)
        if info is not None:
            self.state.rules.check_length(uri, info.size_bytes)
        try:
            return self.state.store.read(uri)
        except ObjectNotFound as exc:
            raise ManifestError(letter.reason, f"{uri}: the original is gone; expected it to be kept") from exc

    def commit_of(self, manifest_id: str) -> Commit | None:
        """The commit under an id; None if no manifest has that id, or if it is a dead letter.

        Raises:
            ManifestError: That id is revoked, or its manifest is not done yet.
        """
        holder = self.state.ledger.accepted(manifest_id)
        if holder is None:
            if self.state.store.stat(self.state.layout.manifest(manifest_id)) is None:
                return None
            raise _used(f"manifest {manifest_id} waits; expected it to be done first")
        if holder.kind == "revoked":
            raise _used(f"the id {manifest_id} was revoked by its planner, and its files were planned again")
        try:
            outcome = self.state.ledger.outcome(holder.key)
        except ObjectNotFound as exc:
            raise _used(f"manifest {manifest_id} is in work; expected it to be done first") from exc
        return outcome if isinstance(outcome, Commit) else None


def _used(message: str) -> ManifestError:
    return ManifestError("id_already_used", message)
