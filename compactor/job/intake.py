"""Takes manifests in: reads each object of the watched prefix and ties its id to it, or refuses it with a reason."""

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.core.crash_points import CrashPoint, OnCrashPoint, ignore_crash_point
from compactor.core.errors import ManifestError, ObjectNotFound, StuckError
from compactor.core.layout import Layout, base_name, canonical, date_of_file, digest, id_from_name, is_text
from compactor.core.manifest import MAX_MANIFEST_BYTES, OUTSIDE, Manifest, parse_manifest
from compactor.core.ports import Clock, ObjectInfo, ObjectStore
from compactor.core.records import Accepted
from compactor.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Delivery:
    """One manifest as it was delivered.

    Attributes:
        uri: The object; a repeated delivery may come as another one.
        digest: Of its bytes.
        accepted: What its id is tied to.
        refusal: Why it cannot be worked on, if so.
    """

    uri: str
    digest: str
    accepted: Accepted
    refusal: ManifestError | None = None


class Intake:
    """Decides what each object of the watched prefix is.

    Args:
        store: Where manifests are.
        layout: Their place.
        ledger: Ties ids to manifests.
        clock: Dates what is accepted.
        allowed_prefixes: Folders that input may be in.
        leave_others: Leave manifests of files elsewhere to whoever planned them, instead of refusing them.
        on_crash_point: Told of each acceptance.
    """

    def __init__(
        self,
        store: ObjectStore,
        layout: Layout,
        ledger: Ledger,
        clock: Clock,
        *,
        allowed_prefixes: Sequence[str],
        leave_others: bool = False,
        on_crash_point: OnCrashPoint = ignore_crash_point,
    ) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._clock = clock
        self._allowed_prefixes = allowed_prefixes
        self._leave_others = leave_others
        self._on_crash_point = on_crash_point

    def receive(self, uri: str) -> Delivery | None:
        """Take in one object; None if it is gone, as it is when another driver was faster, or if it is left to others.

        A manifest that cannot be accepted comes back with a refusal. Its id is made from the object's name then,
        because nothing inside it can be trusted.

        Raises:
            StuckError: The object's name is no Unicode text, so no record can name it.
        """
        if not is_text(uri):
            raise StuckError(f"{uri!r}: the name is not UTF-8; expected one that is: rename the file")
        info = self._store.stat(uri)
        if info is None:
            return None
        try:
            # Without the bytes, the version stands for the content of an object that nobody should read.
            too_big = info.size_bytes > MAX_MANIFEST_BYTES
            data = b"" if too_big else self._store.read(uri, etag=info.etag)
        except ObjectNotFound:
            return None
        fingerprint = digest(info.etag.encode() if too_big else data)
        try:
            manifest = self._parse(info, data)
        except ManifestError as exc:
            if self._leave_others and exc.reason == OUTSIDE:
                return None
            day = date_of_file(base_name(uri), info.modified_at)
            return self._refuse(uri, self._id_of_refused(uri), day, fingerprint, exc)
        record = self._accept(uri, manifest.manifest_id, manifest.date, fingerprint, manifest)
        if record.kind == "manifest" and record.digest == fingerprint:
            return Delivery(uri, fingerprint, record)
        return self._refuse_taken_id(uri, manifest, fingerprint, record)

    def _parse(self, info: ObjectInfo, data: bytes) -> Manifest:
        name = self._name_below(info.uri)
        if "/" in name:
            raise ManifestError("nested", f"{info.uri}: expected directly below {self._layout.manifests_folder}")
        if info.size_bytes > MAX_MANIFEST_BYTES:
            raise ManifestError(
                "too_big", f"{info.uri}: {info.size_bytes} bytes, expected at most {MAX_MANIFEST_BYTES}"
            )
        if name.startswith(("_", ".")):
            raise ManifestError("hidden_name", f"{info.uri}: expected a name that does not begin with _ or .")
        return parse_manifest(
            data,
            uri=info.uri,
            modified_at=info.modified_at,
            allowed_prefixes=self._allowed_prefixes,
            redriven_folder=self._layout.redriven_folder,
        )

    def _name_below(self, uri: str) -> str:
        return canonical(uri).removeprefix(canonical(self._layout.manifests_folder))

    def _id_of_refused(self, uri: str) -> str:
        manifest_id = id_from_name(uri)
        if "/" in self._name_below(uri):
            # A manifest of that name may come to the right place, and must not find its id taken.
            return f"{manifest_id}-nested-{digest(canonical(uri).encode())[:8]}"
        return manifest_id

    def _accept(self, uri: str, manifest_id: str, day: str, fingerprint: str, manifest: Manifest | None) -> Accepted:
        record = self._ledger.accept(
            Accepted(
                manifest_id=manifest_id,
                kind="manifest" if manifest else "refused",
                date=day,
                digest=fingerprint,
                source_uri=uri,
                accepted_at=self._clock.now(),
                manifest=manifest,
            )
        )
        self._on_crash_point(CrashPoint.ACCEPTED, manifest_id)
        return record

    def _refuse(self, uri: str, manifest_id: str, day: str, fingerprint: str, error: ManifestError) -> Delivery:
        record = self._accept(uri, manifest_id, day, fingerprint, None)
        if record.kind != "refused" or record.digest != fingerprint:
            # The name was used before by something else. The content tells the two apart, for ever and on every driver.
            record = self._accept(uri, f"{manifest_id}-dup-{fingerprint[:12]}", day, fingerprint, None)
        return Delivery(uri, fingerprint, record, error)

    def _refuse_taken_id(self, uri: str, manifest: Manifest, fingerprint: str, holder: Accepted) -> Delivery:
        use = "given up by its planner" if holder.kind == "revoked" else f"used by {holder.source_uri}"
        error = ManifestError(
            "id_already_used", f"{uri}: the id {manifest.manifest_id} is {use}, expected an id of its own"
        )
        return self._refuse(uri, f"{manifest.manifest_id}-dup-{fingerprint[:12]}", manifest.date, fingerprint, error)
