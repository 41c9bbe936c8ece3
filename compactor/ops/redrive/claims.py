"""Claims files for a redrive: takes those that are free or of its lineage so far, leaves the rest to their holders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compactor.core.documents.manifest import ManifestFile
from compactor.core.ports import ClaimTable, Clock
from compactor.manifests.claiming import claim_key, manifests_of

IsOwn = Callable[[str], bool]  # whether a holder belongs to the lineage that is redriven, and comes before the redrive


@dataclass(frozen=True, kw_only=True)
class RedriveClaims:
    """Reads claims, and takes them. A file of unknown version cannot be claimed."""

    claims: ClaimTable | None  # the table; None if nothing is ever planned
    clock: Clock
    lease_seconds: float  # how long the claims of the new manifest hold until it is written

    def holders(self, files: Sequence[ManifestFile]) -> dict[str, str]:
        """The manifest that holds each file, by URI; files that are free or of unknown version are left out."""
        keys = _keys(files)
        if self.claims is None or not keys:
            return {}
        found = self.claims.get_many(list(keys))
        manifests = manifests_of(self.claims, (claim.holder for claim in found.values()))
        return {keys[key]: manifests[claim.holder] for key, claim in found.items()}

    def take(self, files: Sequence[ManifestFile], manifest_id: str, is_own: IsOwn) -> dict[str, str]:
        """Claim files for a manifest that is about to be written; returns, by URI, the holders of the others."""
        if self.claims is None:
            return {}
        now, lease = self.clock.now(), self.lease_seconds
        keys = _keys(files)
        claims = self.claims.claim(list(keys), manifest_id, now=now, lease_seconds=lease)
        others = {key: claim.holder for key, claim in claims.items() if claim.holder != manifest_id}
        manifests = manifests_of(self.claims, others.values())
        taken: set[str] = set()
        for holder in filter(lambda each: is_own(manifests[each]), set(others.values())):
            held = [key for key, other in others.items() if other == holder]
            taken |= self.claims.take_over(
                held, from_holder=holder, to_holder=manifest_id, now=now, lease_seconds=lease
            )
        return {keys[key]: manifests[holder] for key, holder in others.items() if key not in taken}


def _keys(files: Sequence[ManifestFile]) -> dict[str, str]:
    """The URI of each file by the key of its claim."""
    return {claim_key(file): file.uri for file in files if file.etag is not None}
