"""What a failed write of a staged file means."""

from collections.abc import Iterator
from contextlib import contextmanager

from compactor.core.errors import ObjectChanged, ObjectNotFound, StoreUnavailable


@contextmanager
def writing(uri: str) -> Iterator[None]:
    """Report a failed write as trouble of the store, so that the input file being read is not blamed for it."""
    try:
        yield
    except (ObjectNotFound, ObjectChanged) as exc:
        raise StoreUnavailable(f"{uri}: could not be written: {exc}") from exc
