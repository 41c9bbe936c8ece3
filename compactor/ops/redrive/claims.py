"""Claims of files that are redriven: a file that another manifest holds is left to it, any other is taken along."""

from collections.abc import Callable, Sequence

from compactor.core.manifest import ManifestFile
from compactor.core.ports import ClaimTable, Clock
from compactor.manifests.claiming import claim_key, manifests_of

IsOwn = Callable[[str], bool]
"""Whether a holder is the manifest that a file is redriven from, or of its family."""


class RedriveClaims:
    """Asks for claims, and takes them.

    A file whose version is not known cannot be claimed.

    Args:
        claims: The table; None where nobody plans.
        clock: Dates leases.
        lease_seconds: How long the new manifest may take to be written before a planner may give it up.
    """

    def __init__(self, claims: ClaimTable | None, clock: Clock, lease_seconds: float) -> None:
        self._claims = claims
        self._clock = clock
        self._lease_seconds = lease_seconds

    def holders(self, files: Sequence[ManifestFile]) -> dict[str, str]:
        """By URI, who holds a file; a file that nobody holds, or whose claim cannot be known, is not in it."""
        keys = {claim_key(file): file.uri for file in files if file.etag is not None}
        if self._claims is None or not keys:
            return {}
        found = self._claims.get_many(list(keys))
        manifests = manifests_of(self._claims, (claim.holder for claim in found.values()))
        return {keys[key]: manifests[claim.holder] for key, claim in found.items()}

    def take(self, files: Sequence[ManifestFile], manifest_id: str, is_own: IsOwn) -> dict[str, str]:
        """Claim files for a manifest that is to be written now.

        Args:
            files: What it is to name.
            manifest_id: The new manifest.
            is_own: Whose claims may be taken over.

        Returns:
            By URI, who holds a file that could not be had.
        """
        if self._claims is None:
            return {}
        now, lease = self._clock.now(), self._lease_seconds
        keys = {claim_key(file): file.uri for file in files if file.etag is not None}
        lost: dict[str, str] = {}
        claims = self._claims.claim(list(keys), manifest_id, now=now, lease_seconds=lease)
        others = {key: claim.holder for key, claim in claims.items() if claim.holder != manifest_id}
        manifests = manifests_of(self._claims, others.values())
        for holder in set(others.values()):
            left = [key for key, other in others.items() if other == holder]
            taken: set[str] = set()
            if is_own(manifests[holder]):
                taken = self._claims.take_over(
                    left, from_holder=holder, to_holder=manifest_id, now=now, lease_seconds=lease
                )
            lost.update({keys[key]: manifests[holder] for key in left if key not in taken})
        return lost
