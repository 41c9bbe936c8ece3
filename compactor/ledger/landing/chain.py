"""One chain: links that are only ever created, each named after the position where the link before it ends.

So of two writers that go on from the same position, one gets the link. No link is ever changed or deleted.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.layout import base_name
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore

HINT_AT = 500
"""Links behind the hint at which a new hint is kept. A listing has about twice as many on one page of S3."""


class Link(Protocol):
    """A document that has the positions of a chain from `first` to `end`."""

    @property
    def first(self) -> int:
        """The position at which it begins."""

    @property
    def end(self) -> int:
        """The position at which the next one begins."""

    def to_json(self) -> bytes:
        """The bytes of the document, as text."""


L = TypeVar("L", bound=Link)
P = TypeVar("P")
H = TypeVar("H")


@dataclass(frozen=True, slots=True)
class Chain(Generic[L]):
    """Reads and writes one chain.

    Attributes:
        folder: The folder of the chain, with a `/` at its end.
        digits: Of the largest position.
        parse: Reads the bytes of a link, given where they are.
    """

    store: ObjectStore
    folder: str
    digits: int
    parse: Callable[[bytes, str], L]

    def last(self) -> L | None:
        """The last link; None without any."""
        names = self._links_behind_hint()
        return self._read(names[-1]) if names else None

    def create(self, link: L) -> L:
        """Create a link, unless there is one that begins at the same position; return the one that is there then."""
        uri = self._uri(link.first)
        # guard: a link of a chain is never replaced
        return link if self.store.create(uri, link.to_json()) else self._read(uri)

    def at(self, first: int) -> L | None:
        """The link that begins at a position; None if there is none."""
        try:
            return self._read(self._uri(first))
        except ObjectNotFound:
            return None

    def links(self) -> Iterator[L]:
        """All links, in order."""
        found = (info.uri for info in self.store.list(self._links_folder))
        return map_ordered(self._read, found)

    def link_with(self, position: int) -> L | None:
        """The link that has a position; None if there is none."""
        last = ""
        for info in self.store.list(self._links_folder):
            if _first_of(info.uri) > position:
                break
            last = info.uri
        found = self._read(last) if last else None
        return found if found is not None and position < found.end else None

    def _links_behind_hint(self) -> list[str]:
        """The links from that of the hint on. A hint that is gone, or wrong, costs only a longer listing."""
        hint = self._hint()
        hinted = hint if hint and self.store.stat(hint) is not None else ""
        behind = [info.uri for info in self.store.list(self._links_folder, start_after=hinted or None)]
        if len(behind) >= HINT_AT:
            self.store.put(self._hint_uri, base_name(behind[-1]).encode())
        return [hinted, *behind] if hinted else behind

    def _hint(self) -> str:
        try:
            name = self.store.read(self._hint_uri).decode(errors="replace")
        except ObjectNotFound:
            return ""
        is_name = name.removesuffix(".json").isdecimal() and len(name) == self.digits + len(".json")
        return f"{self._links_folder}{name}" if is_name else ""

    @property
    def _hint_uri(self) -> str:
        return f"{self.folder}hint"

    @property
    def _links_folder(self) -> str:
        return f"{self.folder}links/"

    def _uri(self, first: int) -> str:
        return f"{self._links_folder}{first:0{self.digits}d}.json"

    def _read(self, uri: str) -> L:
        return self.parse(self.store.read(uri), uri)


def heads(head: Callable[[P], H], places: Iterable[P]) -> Iterator[tuple[P, H | StuckError]]:
    """Each chain's place with its head, or with the error where a record cannot be read: no other has to wait for it.

    Args:
        head: Reads where the chain of a place ends; called from several threads.
        places: The chains.
    """

    def read(place: P) -> tuple[P, H | StuckError]:
        try:
            return place, head(place)
        except StuckError as exc:
            return place, exc

    return map_ordered(read, places)


def children(store: ObjectStore, folder: str) -> Iterator[str]:
    """The names directly below a folder, without listing what is below each of them."""
    after: str | None = None
    while (first := next(iter(store.list(folder, start_after=after)), None)) is not None:
        name = first.uri.removeprefix(folder).partition("/")[0]
        yield name
        after = f"{folder}{name}/~"  # sorts behind all characters of names below


def _first_of(uri: str) -> int:
    """The first position of a link, by its name."""
    return int(base_name(uri).removesuffix(".json"))
