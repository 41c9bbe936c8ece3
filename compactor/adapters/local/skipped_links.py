"""Counts the symbolic links that listings of local input leave out, so that plans can say so."""

# Names are used literally; pathlib would normalise them.

import errno
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from compactor.adapters.local.beneath import beneath, root_of, status_of
from compactor.core.errors import LinkRefused
from compactor.core.inputs.topics_and_streams import is_topic_or_stream
from compactor.core.layout import canonical, is_s3


def skipped_links(source: str, allowed_prefixes: Sequence[str]) -> dict[str, int]:
    """How many links below a folder no listing follows, by the reason that plans give; none on S3.

    Args:
        source: The folder that is planned.
        allowed_prefixes: Folders that links may lead to.
    """
    return dict(Counter(reason for _, reason in links_left_out(source, allowed_prefixes)))


def links_left_out(source: str, allowed_prefixes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The links below a folder that no listing follows, each with its reason; see `skipped_links`."""
    roots = [canonical(each) for each in allowed_prefixes if not (is_s3(each) or is_topic_or_stream(each))]
    if is_s3(source) or root_of(canonical(source).rstrip("/"), roots) is None:
        return
    for entry in _links(canonical(source)):
        if reason := _reason(entry, roots):
            yield entry.path, reason


def _reason(entry: os.DirEntry[str], roots: Sequence[str]) -> str:
    with suppress(OSError):
        if _leads_nowhere(entry):
            return "dangling_link"
        if entry.is_dir():
            return "linked_folder"
        try:
            beneath(entry.path, roots, status_of)
        except LinkRefused:
            return "outside_link" if entry.is_file() else ""
    return ""


def _leads_nowhere(entry: os.DirEntry[str]) -> bool:
    try:
        os.stat(entry.path)  # noqa: PTH116 - names are used literally
    except OSError as exc:
        is_there = os.path.islink(entry.path)  # noqa: PTH114 - it may be gone since it was listed
        return is_there and exc.errno in {errno.ENOENT, errno.ELOOP}
    return False


def _links(folder: str) -> Iterator[os.DirEntry[str]]:
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield entry
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
