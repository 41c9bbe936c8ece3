"""Where this user keeps, on this machine, what `compact` remembers of local files while its state is on S3."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from compactor.core.layout import Layout, canonical, is_s3

_VARIABLE = "XDG_CACHE_HOME"


def seen_file(layout: Layout, environment: Mapping[str, str] = os.environ) -> str:
    """The SQLite file for local files: beside a local state, or in the user's folder for caches [XDG Base Directory].

    Each state has a file of its own there. Without it the next call reads records again, with the same result, but does
    not notice a file that was rewritten with its length and its time set back.

    Returns:
        Its path; empty if the user has no folder for caches.
    """
    if not is_s3(layout.state):
        return layout.seen_file
    named = hashlib.blake2b(canonical(layout.state).encode(errors="surrogatepass"), digest_size=16).hexdigest()
    folder = _cache_folder(environment)
    return "" if folder is None else str(folder / "compactor" / f"{named}.sqlite")


def _cache_folder(environment: Mapping[str, str]) -> Path | None:
    given, home = (Path(environment.get(name, "")) for name in (_VARIABLE, "HOME"))
    if given.is_absolute():  # a relative one is to be ignored
        return given
    return home / ".cache" if home.is_absolute() else None
