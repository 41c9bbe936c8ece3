"""Tells whether links of chains give a manifest the ranges, the landed objects and the gaps that it names."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import ManifestError
from compactor.core.inputs.source_places import is_topic_or_stream
from compactor.core.kafka.ranges import KafkaRange, Topic, is_kafka
from compactor.core.kinesis.places import SCHEME, KinesisStream, StreamGap, is_kinesis
from compactor.core.layout import canonical, redriven_owner, root_id
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.kafka.runs import Run, runs
from compactor.ledger.kinesis.shard_chains import ShardChains, ShardPlace
from compactor.ledger.state import State

_EXPECTED = "what `compactor plan` gave to this manifest"
_LANDED_NAMES = 4  # of a landed object: its source, its stream, its shard and its sequence numbers


def names_planned(state: State, manifest: Manifest) -> bool:
    """Whether a manifest names ranges, gaps, or copies of input: only a plan, or a redrive, gives these to one."""
    return any(is_planned(state, file) for file in manifest.files)


def is_planned(state: State, file: ManifestFile) -> bool:
    """Whether a file is a range, a gap, or a copy of input."""
    return is_topic_or_stream(file.uri) or bool(redriven_owner(file.uri, state.layout.redriven_folder))


def check_given(state: State, manifest: Manifest, uri: str) -> None:
    """Check that links give all that is planned in a manifest to it, or to the root that it claims to redrive.

    A root has all offsets of its links, and a redrive any of them. Only a record tells of which lines a redrive is.

    Args:
        state: Has the chains.
        manifest: The manifest.
        uri: Where it is, for the message.

    Raises:
        ManifestError: A link does not.
    """
    given = _Given(state, root_id(manifest.manifest_id))
    is_root = given.root == manifest.manifest_id
    ranges = [file for file in manifest.files if is_kafka(file.uri)]
    of_topics = given.foreign_runs(ranges) if is_root else given.foreign_parts(ranges)
    for named in chain(of_topics, given.foreign_files(manifest.files, is_root=is_root)):
        raise ManifestError("not_planned", f"{uri}: names {named}; expected {_EXPECTED}")


def files_not_in(files: Sequence[ManifestFile], manifest: Manifest) -> list[ManifestFile]:
    """The files that a manifest does not have, and the parts of ranges that it does not have.

    Raises:
        ValueError: One of the files looks like a range and is none.
    """
    uris = {canonical(file.uri) for file in manifest.files}
    ranges = sorted((KafkaRange.parse(file.uri), file.etag or "") for file in manifest.files if is_kafka(file.uri))
    left = list[ManifestFile]()
    for file in files:
        if is_kafka(file.uri):
            left += _parts_left(file, [each for each, topic_id in ranges if topic_id == (file.etag or "")])
        elif canonical(file.uri) not in uris:
            left.append(file)
    return left


def _parts_left(file: ManifestFile, others: Sequence[KafkaRange]) -> list[ManifestFile]:
    """What of a range is in none of others, which are in order; the file itself if that is all of it."""
    wanted, parts = KafkaRange.parse(file.uri), list[KafkaRange]()
    at = wanted.first
    for each in others:
        if (each.topic, each.partition) == (wanted.topic, wanted.partition) and each.end > at:
            if min(each.first, wanted.end) > at:
                parts.append(KafkaRange(wanted.topic, wanted.partition, at, min(each.first, wanted.end)))
            at = max(at, each.end)
    if at < wanted.end:
        parts.append(KafkaRange(wanted.topic, wanted.partition, at, wanted.end))
    if parts == [wanted]:
        return [file]
    size_bytes = file.size_bytes or 0
    sizes = [max(size_bytes * each.offsets // wanted.offsets, 1) for each in parts]
    return [
        file.model_copy(update={"uri": str(each), "size_bytes": size}) for each, size in zip(parts, sizes, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Given:
    """What links give to one manifest."""

    state: State
    root: str
    _streams: dict[KinesisStream, list[str]] = field(default_factory=dict)

    def foreign_runs(self, ranges: Sequence[ManifestFile]) -> Iterator[str]:
        """The first range of each run that is no link of this manifest."""
        chains = Chains(self.state)
        by_topic: dict[tuple[Topic, str], list[ManifestFile]] = defaultdict(list)
        for file in ranges:
            by_topic[KafkaRange.parse(file.uri).topic, file.etag or ""].append(file)
        for (topic, topic_id), files in by_topic.items():
            for run, those in runs(files).items():
                link = chains.link_at(ChainPlace(topic, topic_id, run.partition), run.first)
                if link is None or (Run(run.partition, link.first, link.end), link.manifest_id) != (run, self.root):
                    yield those[0].uri

    def foreign_parts(self, ranges: Iterable[ManifestFile]) -> Iterator[str]:
        """The ranges that are in no link of this manifest, or that others of them overlap."""
        chains, ends = Chains(self.state), dict[ChainPlace, int]()
        for part, file in sorted(((KafkaRange.parse(file.uri), file) for file in ranges), key=lambda each: each[0]):
            place = ChainPlace(part.topic, file.etag or "", part.partition)
            link = chains.link_with(place, part.first)
            is_within = link is not None and part.end <= link.end and link.manifest_id == self.root
            # guard: a redrive on record has no offset twice, and none of others
            if not is_within or part.first < ends.get(place, 0):
                yield file.uri
            ends[place] = part.end

    def foreign_files(self, files: Iterable[ManifestFile], *, is_root: bool) -> Iterator[str]:
        """The landed objects and the gaps that no link gives to this manifest."""
        for file in files:
            owner = redriven_owner(file.uri, self.state.layout.redriven_folder)
            if is_kinesis(file.uri):
                # guard: a manifest has no gap that no link gives to it
                is_given = self._has_gap(StreamGap.parse(file.uri), file.etag or "")
            elif owner == self.root:
                is_given = self._has_object(canonical(file.uri), file.etag if is_root else None)
            else:
                is_given = owner is None or not is_root
            if not is_given:
                yield file.uri

    def _has_gap(self, gap: StreamGap, stream_id: str) -> bool:
        if stream_id not in self._ids(gap.stream):
            return False
        chains, place = ShardChains(self.state), ShardPlace(gap.stream, stream_id, gap.shard_id)
        link = chains.chain(place).at(gap.after)
        if link is not None and link.gap and link.manifest_id == self.root and int(link.begins or 0) == gap.before:
            return True
        losses = chains.losses(place).links() if not gap.before else ()
        return any(int(loss.after) == gap.after and loss.manifest_id == self.root for loss in losses)

    def _has_object(self, uri: str, etag: str | None) -> bool:
        names = uri.removeprefix(canonical(self.state.layout.landed_inputs(self.root))).split("/")
        after = names[-1].partition("-")[0]
        try:
            stream = KinesisStream.parse(f"{SCHEME}{'/'.join(names[:2])}")
        except ValueError:
            return False
        if len(names) != _LANDED_NAMES or not after.isdecimal():
            return False
        places = (ShardPlace(stream, stream_id, names[2]) for stream_id in self._ids(stream))
        links = (ShardChains(self.state).chain(place).at(int(after)) for place in places)
        return any(
            link is not None
            and canonical(link.uri) == uri
            and link.manifest_id == self.root
            and etag in {None, link.etag.strip('"')}
            for link in links
        )

    def _ids(self, stream: KinesisStream) -> list[str]:
        if stream not in self._streams:
            self._streams[stream] = ShardChains(self.state).stream_ids(stream)
        return self._streams[stream]
