"""Finds duplicated rows, because two manifests compacted the same file version.

Redriven input is not found: redriven lines are in separate files, and a quarantined file has no rows.
"""

import hashlib
from collections.abc import Iterator

from compactor.core.documents.changes import Commit
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.layout import ManifestKey, canonical
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.reading import Scope, accounts
from compactor.ledger.state import State
from compactor.ops.verify.grouping import GroupedOnDisk
from compactor.ops.verify.report import Discrepancy

_DIGEST_BYTES = 16

Versions = GroupedOnDisk[ManifestKey]
"""The manifests with rows of each file version, by its digest."""


def add_versions(versions: Versions, commit: Commit) -> None:
    """Add a commit's files with rows."""
    for file in commit.files:
        if digest := version_digest(file):
            versions.add(digest.hex(), commit.date, commit.manifest_id)


def doubled_files(state: State, versions: Versions) -> Iterator[Discrepancy]:
    """Yield one discrepancy for each manifest that compacted the same files as an earlier one."""
    pairs = dict[tuple[ManifestKey, ManifestKey], None]()
    for _, keys in versions.groups():
        first, *others = dict.fromkeys(keys)
        pairs |= dict.fromkeys((first, other) for other in others)
    yield from filter(None, map_ordered(lambda pair: doubled_versions(state, *pair), pairs))


def doubled_versions(state: State, first: ManifestKey, second: ManifestKey) -> Discrepancy | None:
    """The file versions that two manifests both compacted; None if there are none."""
    # Unreadable records are reported with their manifest.
    commits = [each.commit for each in accounts(state, Scope(keys=(first, second)))]
    reports = [commit.files if commit is not None else () for commit in commits]
    files = [{digest: file.uri for file in each if (digest := version_digest(file))} for each in reports]
    common = files[0].keys() & files[1].keys()
    if not common:
        return None
    more = f", and {len(common) - 1} more files of both" if len(common) > 1 else ""
    found = f"compacted by manifest {first.id} as well{more}"
    return Discrepancy(second.id, files[0][min(common)], "the rows of each file version once", found)


def version_digest(file: FileReport) -> bytes:
    """The digest of a file version with rows; for a range, that of the continued version. Empty for any other file.

    A local file gets a new time when it is touched, so its version is its bytes, and the log before it.
    """
    if file.status is not FileStatus.COMPACTED or not file.etag:
        return b""
    log = f"#{file.follows}" if file.follows else ""
    # guard: two ranges that begin at the same byte are the same lines
    if (part := file.range) is not None:
        return _digest(f"{canonical(part.continues)}#{part.digest_before}@{part.from_byte}{log}")
    # guard: duplicated rows of a touched local file are found
    return _digest(f"{canonical(file.uri)}#{file.digest or file.etag}{log}")


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()
