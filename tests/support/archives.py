"""Unpacks archives that were checked, or made, by who asks."""

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: str | Path) -> None:
    """Write the members into a folder, and none outside of it; Python before 3.11.4 has no filters, and trusts them."""
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(folder)  # noqa: S202 - see above
