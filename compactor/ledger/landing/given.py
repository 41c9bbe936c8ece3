"""Checks that links of chains give a manifest the landed objects and gaps that it names."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import ManifestError
from compactor.core.layout import canonical, redriven_owner, root_id
from compactor.core.logs.names import LogGap, LogName, is_log
from compactor.ledger.landing.chains import LogChains, PartitionPlace
from compactor.ledger.state import State

_EXPECTED = "what `compactor plan` gave to this manifest"
_LANDED_NAMES = 5  # of a landed object: the scheme, the source and the name of its log, its partition and its positions


def names_landed(state: State, manifest: Manifest) -> bool:
    """Whether a manifest names gaps, or copies of input, which only landing or a redrive can give it."""
    return any(is_landed(state, file) for file in manifest.files)


def is_landed(state: State, file: ManifestFile) -> bool:
    """Whether a file is a gap, or a copy of input."""
    return is_log(file.uri) or bool(redriven_owner(file.uri, state.layout.redriven_folder))


def check_given(state: State, manifest: Manifest, uri: str) -> None:
    """Check that links give the landed data in a manifest to it, or to the root that it claims to redrive.

    Only a record shows which lines a redrive contains.

    Raises:
        ManifestError: Some landed data is not from a link.
    """
    root = root_id(manifest.manifest_id)
    given, is_root = _Given(state, root), root == manifest.manifest_id
    for file in manifest.files:
        owner = redriven_owner(file.uri, state.layout.redriven_folder)
        if is_log(file.uri):
            # guard: a manifest has only gaps that a link gives to it
            is_given = given.has_gap(LogGap.parse(file.uri), file.etag or "")
        elif owner == root:
            is_given = given.has_object(canonical(file.uri), file.etag if is_root else None)
        else:
            is_given = owner is None or not is_root
        if not is_given:
            raise ManifestError("not_planned", f"{uri}: names {file.uri}; expected {_EXPECTED}")


@dataclass(frozen=True, slots=True)
class _Given:
    """The landed data that links give to one manifest."""

    state: State
    root: str
    _log_ids: dict[LogName, Sequence[str]] = field(default_factory=dict)

    def has_gap(self, gap: LogGap, log_id: str) -> bool:
        if log_id not in self._ids(gap.log):
            return False
        place = PartitionPlace(gap.log, log_id, gap.partition_id)
        link = LogChains(self.state).chain(place).at(gap.after)
        return link is not None and link.gap and link.manifest_id == self.root and place.gap(link) == gap

    def has_object(self, uri: str, etag: str | None) -> bool:
        names = uri.removeprefix(canonical(self.state.layout.landed_inputs(self.root))).split("/")
        after = names[-1].partition("-")[0]
        try:
            log = LogName.parse(f"{names[0]}://{'/'.join(names[1:3])}")
        except ValueError:
            return False
        if len(names) != _LANDED_NAMES or not after.isdecimal():
            return False
        places = (PartitionPlace(log, log_id, names[3]) for log_id in self._ids(log))
        links = (LogChains(self.state).chain(place).at(int(after)) for place in places)
        return any(
            link is not None
            and canonical(link.uri) == uri
            and link.manifest_id == self.root
            and etag in {None, link.etag.strip('"')}
            for link in links
        )

    def _ids(self, log: LogName) -> Sequence[str]:
        if log not in self._log_ids:
            self._log_ids[log] = LogChains(self.state).log_ids(log)
        return self._log_ids[log]
