"""Lists the files of a source of `compact`, and unlistable entries: forbidden folders, and links."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compactor.adapters.local.links import links_left_out
from compactor.adapters.local.store import LocalStore
from compactor.core.errors import AccessError
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import folder, is_s3
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.sources.candidates import SKIP_REASONS
from compactor.sources.plan import LeftOut


@dataclass(frozen=True, slots=True)
class SourceListing:
    """A `compactor.sources.folders.planning.Listing`.

    Attributes:
        confined: The local folders that links must not escape.
    """

    store: ObjectStore
    confined: Sequence[str]

    def __call__(self, source: SourcePlace) -> Iterator[ObjectInfo | LeftOut]:
        if source.names:
            yield from filter(None, map(self._named, source.texts))
        elif is_s3(source.folder):
            yield from self.store.list(folder(source.folder))
        else:
            yield from self._local(source.folder)

    def _named(self, uri: str) -> ObjectInfo | LeftOut | None:
        try:
            return self.store.stat(uri)
        except AccessError as exc:
            return LeftOut(uri, "forbidden", str(exc))

    def _local(self, place: str) -> Iterator[ObjectInfo | LeftOut]:
        denied: dict[str, str] = {}
        root = folder(place)

        def on_denied(uri: str, error: str) -> None:
            if uri == root:
                raise AccessError(error)
            denied.setdefault(uri, error)

        yield from LocalStore(confined=self.confined).list(root, on_denied=on_denied)
        for uri, error in denied.items():
            yield LeftOut(uri, "forbidden", error)
        for uri, reason in links_left_out(place, self.confined):
            yield LeftOut(uri, reason, SKIP_REASONS[reason])
