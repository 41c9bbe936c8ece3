"""Files that changed between their listing and their reading: what to tell of them, and how they are planned again."""

from collections.abc import Iterable

from compactor.core.documents.records import Commit, FileStatus
from compactor.manifests.claiming import Claimer, claim_key
from compactor.manifests.plan import LeftOut


def changed_files(commits: Iterable[Commit], claimer: Claimer) -> list[LeftOut]:
    """The files of some commits that changed before they were read. Their claims are given up.

    The next plan takes the version that is there by then, also if it is the one that was listed.
    """
    left_out: list[LeftOut] = []
    for commit in commits:
        changed = {file.uri: file for file in commit.files if file.status is FileStatus.CHANGED}
        accepted = claimer.state.ledger.accepted(commit.manifest_id) if changed else None
        if accepted is not None and accepted.manifest is not None:
            claimer.release_claims([claim_key(file) for file in accepted.manifest.files if file.uri in changed])
        left_out += [LeftOut(uri, "changed", f"after it was listed: {file.detail}") for uri, file in changed.items()]
    return left_out
