"""Delivers what no attempt can compact: objects that S3 denies for good, and objects that kill their worker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.ports import ObjectStore
from tests.faults.fault_rules import FaultKind, Operation, Rule
from tests.soak.files import DAY

_READS = frozenset({Operation.GET_OBJECT, Operation.HEAD_OBJECT})
_STARTS = {
    FaultKind.ACCESS_DENIED: "denied-403-",  # a foreign KMS key
    FaultKind.UNKNOWN_KEY: "denied-400-",  # a key of the customer
    FaultKind.KILLED_WORKER: "killer-",
}
_CLOSED = "closed-"
_PREFIXES = ("troubled-", _CLOSED)


def lasting_rules(root: str) -> list[Rule]:
    """What befalls the objects that this module delivers, for good.

    Args:
        root: The prefix of all places, as `s3://bucket`.
    """
    place = root.removeprefix("s3://")
    rules = [Rule(kind, _READS, rf"^{place}/input/trouble/{start}", probability=1.0) for kind, start in _STARTS.items()]
    return [*rules, Rule(FaultKind.ACCESS_DENIED, _READS, rf"^{place}/manifests/{_CLOSED}", probability=1.0)]


def is_troubled(manifest_id: str) -> bool:
    """Whether a manifest is one of those that this module delivers."""
    return manifest_id.startswith(_PREFIXES)


@dataclass(slots=True)
class Expected:
    """What must become of everything that was delivered.

    Attributes:
        letters: Ids of manifests that must become dead letters, with their reason.
        forbidden: URIs of files that must be quarantined as `forbidden`.
        closed: URIs of manifests that may not be read, and have to stay where they are.
    """

    letters: dict[str, str] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)


class Trouble:
    """Delivers a manifest of each kind in turn.

    Args:
        store: Reaches the places without faults.
        input_folder: Where input is.
        manifests_folder: Where manifests are delivered.
        new_file: Writes an honest file.
        expected: Takes what must become of each delivery.
        with_killers: Whether workers have processes of their own to be killed.
    """

    def __init__(
        self,
        store: ObjectStore,
        input_folder: str,
        manifests_folder: str,
        new_file: Callable[[], ManifestFile],
        *,
        expected: Expected,
        with_killers: bool,
    ) -> None:
        self._expected = expected
        self._store = store
        self._input = f"{input_folder}/trouble/"
        self._manifests = manifests_folder
        self._new_file = new_file
        killers = [self._killer] if with_killers else []
        self._kinds = cycle([*killers, self._denied, *killers, self._denied_in_part, *killers, self._closed])
        self._count = 0

    def deliver(self) -> str:
        """Deliver the next one; return its kind in words."""
        self._count += 1
        return next(self._kinds)()

    def _killer(self) -> str:
        """Its second file is as any other, and has to wait for good with it."""
        files = [self._write(FaultKind.KILLED_WORKER, 1), self._write(FaultKind.KILLED_WORKER, 2, start="beside-")]
        self._expected.letters[self._put(files)] = "retries_exhausted"
        return "worker killers"

    def _denied(self) -> str:
        files = [self._write(FaultKind.ACCESS_DENIED, 1), self._write(FaultKind.UNKNOWN_KEY, 2)]
        self._expected.letters[self._put(files)] = "forbidden"
        return "manifests of denied files"

    def _denied_in_part(self) -> str:
        kind = (FaultKind.ACCESS_DENIED, FaultKind.UNKNOWN_KEY)[self._count % 2]
        denied = self._write(kind, 1)
        self._put([self._new_file(), denied, self._new_file()])
        self._expected.forbidden.add(denied.uri)
        return "manifests with a denied file"

    def _closed(self) -> str:
        manifest_id = self._put([self._write(FaultKind.ACCESS_DENIED, 1, start="open-")], prefix=_CLOSED)
        self._expected.closed.add(f"{self._manifests}{manifest_id}.json")
        return "manifests that may not be read"

    def _write(self, kind: FaultKind, number: int, *, start: str = "") -> ManifestFile:
        uri = f"{self._input}{start or _STARTS[kind]}{self._count}-{number}.ndjson"
        self._store.put(uri, b'{"id": "of trouble"}\n')
        info = self._store.stat(uri)
        assert info is not None, uri
        return ManifestFile(uri=uri, size_bytes=info.size_bytes, etag=info.etag, event_time=info.modified_at)

    def _put(self, files: Sequence[ManifestFile], *, prefix: str = _PREFIXES[0]) -> str:
        manifest_id = f"{prefix}{self._count}"
        manifest = Manifest(manifest_id=manifest_id, date=DAY, created_at="2025-12-21T10:00:00Z", files=tuple(files))
        self._store.put(f"{self._manifests}{manifest_id}.json", manifest.to_json())
        return manifest_id
