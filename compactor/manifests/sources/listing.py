"""Lists the files of sources that are input: no markers, no hidden names, no file twice."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import canonical, folder
from compactor.core.ports import ObjectInfo
from compactor.manifests.candidates import SKIP_REASONS, skip_reason
from compactor.manifests.plan import LeftOut, Plan

Listing = Callable[[SourcePlace], Iterator[ObjectInfo | LeftOut]]
"""Lists the files below a source, and what of it cannot be listed."""


def source_files(
    listing: Listing,
    sources: Sequence[SourcePlace],
    plan: Plan,
    *,
    excludes: Callable[[str], bool],
    with_hidden: bool = False,
) -> Iterator[ObjectInfo]:
    """Yield the files that are input; counts all others in a plan, with what could not be listed."""

    def reason_for(source: SourcePlace, found: ObjectInfo | LeftOut) -> str:
        reason = _reason(source, found, with_hidden=with_hidden)
        return "excluded" if reason in {"", "bad_name"} and excludes(found.uri) else reason

    for number, source in enumerate(sources):
        for found in listing(source):
            if not _is_meant(source, found) or any(_is_meant(each, found) for each in sources[:number]):
                continue
            reason = reason_for(source, found)
            if not reason and isinstance(found, ObjectInfo) and found.target:
                file = replace(found, uri=found.target)
                if any(_is_meant(each, file) and not reason_for(each, file) for each in sources):
                    reason = "linked_file"
            if reason == "bad_name":
                plan.left_out.append(LeftOut(found.uri, reason, SKIP_REASONS[reason]))
            elif reason:
                plan.skip(reason, found.uri)
            elif isinstance(found, ObjectInfo):
                yield found
            else:
                plan.left_out.append(found)


def _is_meant(source: SourcePlace, found: ObjectInfo | LeftOut) -> bool:
    """Whether a source names a file, or a folder above some of its files."""
    is_meant = source.takes if isinstance(found, ObjectInfo) else source.reaches
    return canonical(found.uri).startswith(folder(canonical(source.folder))) and is_meant(found.uri)


def _reason(source: SourcePlace, found: ObjectInfo | LeftOut, *, with_hidden: bool) -> str:
    """Why an object is skipped; empty for one that is input, or that a person has to know of."""
    is_hidden = not with_hidden and source.is_hidden(found.uri)
    if isinstance(found, ObjectInfo):
        return skip_reason(found.uri, found.size_bytes, [source.folder], is_hidden=is_hidden) or ""
    return "hidden" if is_hidden else ""
