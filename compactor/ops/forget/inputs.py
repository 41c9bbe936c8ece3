"""Deletes input files that hold a value, or only names them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from compactor.core.documents.records import Inputs
from compactor.core.errors import AccessError
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State
from compactor.ndjson.grok import DecoderOf, no_decoder
from compactor.ndjson.kinds.formats import recorded_splitter
from compactor.ndjson.lines import Limits, Splitter
from compactor.ops.forget.candidates import NEEDED, ONLY_THERE, Candidate
from compactor.ops.forget.forget_report import HeldInput
from compactor.ops.forget.input_search import InputFound, search_input
from compactor.ops.forget.wanted import Wanted

_ASKED = "only named: `--inputs delete` deletes it"
_REPLACED = "it was replaced since it was read: search it again once its new version is compacted"


@dataclass(frozen=True, kw_only=True)
class InputEraser:
    """Searches input files, and deletes those that hold a value if it may.

    Attributes:
        limits: The longest line, where no commit tells it.
        inputs: What becomes of input files. The compactor's own copies of redriven lines are deleted in any case.
        decoder_of: Makes what reads lines of text as they were read.
    """

    state: State
    wanted: Wanted
    limits: Limits
    inputs: Inputs
    decoder_of: DecoderOf = no_decoder

    def erase(self, candidates: Sequence[Candidate], *, dry_run: bool) -> Iterator[HeldInput]:
        """Search these files; yield those that held a value, or may hold one still."""
        by_uri = defaultdict[str, list[Candidate]](list)
        for each in candidates:
            by_uri[each.uri].append(each)
        for found in map_ordered(self._searched, by_uri.values()):
            if found is not None:
                held, etag = found
                yield self._deleted(held, etag) if held.deleted and not dry_run else held

    def _deleted(self, held: HeldInput, etag: str) -> HeldInput:
        try:
            now = self.state.store.stat(held.uri)
            # guard: a file that was replaced since it was searched is not deleted
            if now is not None and now.etag != etag:  # others were searched meanwhile
                return replace(held, deleted=False, why=_REPLACED)
            self.state.store.delete([held.uri])
        except AccessError as exc:
            return replace(held, deleted=False, why=f"it cannot be deleted: {exc}")
        return held

    def _searched(self, candidates: Sequence[Candidate]) -> tuple[HeldInput, str] | None:
        """What a file holds, with the version that was searched."""
        first = candidates[0]
        if any(each.is_named for each in candidates):
            info = self.state.store.stat(first.uri)
            found = InputFound(etag=info.etag, holds=True) if info is not None else InputFound()
        else:
            longest = max(each.max_line_bytes for each in candidates) or self.limits.max_line_bytes
            limits = replace(self.limits, max_line_bytes=longest)
            found = search_input(self.state.store, first.uri, self._split(first), limits, self.wanted)
        if found.fault:
            return HeldInput(
                first.uri, first.manifest_id, deleted=False, why=f"it cannot be searched: {found.fault}"
            ), ""
        if not found.holds:
            return None
        whys = [self._why_kept(each, found.etag) for each in candidates]
        # That another manifest has the lines, too, is no reason to keep a file, but these are.
        why = next((each for each in whys if each in (NEEDED, ONLY_THERE)), min(whys, key=bool))
        return HeldInput(first.uri, first.manifest_id, deleted=not why, why=why), found.etag

    def _split(self, file: Candidate) -> Splitter:
        return recorded_splitter(file.format, self.decoder_of(file.grok) if file.grok else None)

    def _why_kept(self, each: Candidate, etag: str) -> str:
        """Why a file is not deleted, by what one manifest says of it."""
        if each.kept_because or each.is_own:
            return each.kept_because
        # guard: a version of an input file that was not compacted is not deleted
        if not each.etag or etag != each.etag:
            return _REPLACED
        return "" if self.inputs == "delete" else _ASKED
