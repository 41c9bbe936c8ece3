"""Rebuilds manifests with earlier versions of replaced files, using the current versions.

The new version is claimed under a separate id during the rebuild, so that no planner takes it. If this process dies,
the claim's lease expires, and the file is as before.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileReport
from compactor.core.errors import AccessError, CompactorError, InputError, TryAgainError
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.results import only
from compactor.ledger.accounts.reading import Detail, account_of
from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ops.rebuild.damaged import Damaged, RebuildScan, compacted
from compactor.ops.rebuild.rebuilder import Rebuilder, Rebuilt
from compactor.sources.claiming import Claimer, claim_key
from compactor.sources.plan import Replacement

_ID_CHARACTERS = 160  # leaves room for suffixes


class NotReplaced(NamedTuple):
    """A replaced file whose rows stay unchanged."""

    replacement: Replacement
    why: str


class Replaced(NamedTuple):
    """The rebuilt manifests, and the files whose rows stay unchanged."""

    rebuilt: tuple[Rebuilt, ...]
    refused: tuple[NotReplaced, ...]


@dataclass(frozen=True, kw_only=True)
class Replacer:
    """Rebuilds manifests with other versions of some files. Safe while jobs, planners and other rebuilds run.

    Attributes:
        claimer: Claims the new versions.
    """

    state: State
    rebuilder: Rebuilder
    claimer: Claimer

    def replace(self, replacements: Sequence[Replacement]) -> Replaced:
        """Rebuild the rows of replaced files. An obstacle for one manifest does not stop the others."""
        by_manifest: dict[ManifestKey, list[Replacement]] = {}
        for each in replacements:
            by_manifest.setdefault(ManifestKey(each.earlier.date, each.earlier.manifest_id), []).append(each)
        found = [part for key, those in by_manifest.items() for part in self._replaced(key, those)]
        return Replaced(only(Rebuilt, found), only(NotReplaced, found))

    def _replaced(self, key: ManifestKey, those: Sequence[Replacement]) -> Sequence[Rebuilt | NotReplaced]:
        try:
            damaged = self._checked(key, those)
        except InputError as exc:
            return [NotReplaced(each, str(exc)) for each in those]
        holder = f"{key.id[:_ID_CHARACTERS]}-replacing-{secrets.token_hex(4)}"
        new_keys = [claim_key(each.file) for each in those]
        old_keys = [claim_key(each.file.model_copy(update={"etag": each.earlier.etag})) for each in those]
        # guard: a new version is claimed while its rows are made
        claimed = self.claimer.claim([key for key in new_keys if key not in old_keys], holder)
        rebuilt: tuple[Rebuilt, ...] = ()
        try:
            if claimed.taken or claimed.held:
                return [NotReplaced(each, "another planner has claimed the new version") for each in those]
            self.claimer.release_claims([key for key in old_keys if key not in new_keys])

            def still_claimed() -> None:
                if self.state.ledger.accepted(holder) is not None:
                    raise InputError("its new version was planned meanwhile")

            report = self.rebuilder.rebuild(RebuildScan(damaged=(replace(damaged, check=still_claimed),)))
            rebuilt = report.rebuilt
        finally:
            if rebuilt:
                self.claimer.hand_over(new_keys, holder, key.id)
            else:
                self.claimer.revoke(holder)
        whys = [f"its rows cannot be rebuilt: {each.why}" for each in (*report.refused, *report.failed)]
        return [*rebuilt, *(NotReplaced(each, why) for why in whys for each in those)]

    def _checked(self, key: ManifestKey, those: Sequence[Replacement]) -> Damaged:
        """The manifest with the versions to read.

        Raises:
            InputError: Its rows cannot be rebuilt exactly.
        """
        if any(each.earlier.state != "compacted" for each in those):
            raise InputError(f"manifest {key.id} is not done yet; run the command again")
        if hindrance := next((each.hindrance for each in those if each.hindrance), ""):
            raise InputError(hindrance)
        account = account_of(self.state, key.id, Detail.ACCEPTED | Detail.LINEAGE)
        commit, accepted = account.commit, account.accepted
        if commit is None or not account.is_done or accepted is None or accepted.manifest is None:
            raise InputError(f"manifest {key.id} is not done yet, or its records are incomplete")
        if (expired := Visible(self.state).deletion("rows", key, commit.generation)) is not None:
            raise InputError(f"the rows of manifest {key.id} {expired.words}")
        if commit.erased is not None:  # guard: a new version of one file does not restore erased lines of others
            raise InputError("lines of its manifest were erased on request; its other files may still contain them")
        uris = {each.file.uri: each.file for each in those}
        if any(source.source_uri in uris for each in account.effective_redrives for source in each.inputs):
            raise InputError("its rejected lines were redriven; their rows would be duplicated")
        inputs = {
            uri: file for uri, file in map_ordered(lambda file: self._input(file, uris), compacted(commit)) if file
        }
        why = f"{len(those):,} of its input files replaced: {those[0].file.uri}"
        return Damaged(accepted, commit, why, inputs, frozenset(uris))

    def _input(self, file: FileReport, replaced: dict[str, ManifestFile]) -> tuple[str, ManifestFile | None]:
        """The version of a file to read; None for the commit's version.

        Raises:
            InputError: A file that was not replaced is missing or has changed.
        """
        if file.uri in replaced:
            return file.uri, replaced[file.uri].model_copy(update={"follows": file.follows or None})
        try:
            info = self.state.store.stat(file.uri)
            if info is not None and (info.etag == file.etag or file.may_have_grown(info.size_bytes)):
                return file.uri, None
            if info is not None and file.digest and self.rebuilder.digest_of(info) == file.digest:
                now = ManifestFile(
                    uri=file.uri,
                    size_bytes=info.size_bytes,
                    etag=info.etag,
                    path_columns=file.path_columns,
                    follows=file.follows or None,
                )
                return file.uri, now
        except (AccessError, TryAgainError) as exc:
            raise InputError(f"its rows cannot be rebuilt: {exc}") from exc
        except CompactorError:
            raise
        found = "is gone" if info is None else "was replaced, too"
        raise InputError(f"its rows cannot be rebuilt, because {file.uri} in the same manifest {found}")
