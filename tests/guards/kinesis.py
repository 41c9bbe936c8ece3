"""Guards of landed streams."""

from tests.guards.guard import Guard

_PLANNING = "tests/unit/manifests/test_kinesis_planning.py"
_LOOP = "tests/unit/manifests/test_stream_loop.py"
_PARSING = "tests/unit/core/test_manifest.py"
_LINES = "tests/unit/manifests/test_kinesis_lines.py"
_PACKED = "tests/unit/core/test_aggregation.py"
_VERIFYING = "tests/unit/ops/verify/test_landed.py"
_LOG = "tests/contract/test_kinesis_log.py"

KINESIS = (
    Guard(
        "a draft of landed objects stays until a job has begun with its manifest",
        "manifests/kinesis/landing.py",
        "*([self._draft(manifest_id)] if outcome.is_over else [])",
        "self._draft(manifest_id)",
        ("tests/unit/job/test_landed_streams.py",),
    ),
    Guard(
        "a manifest has no gap that no link gives to it",
        "ledger/planned/given.py",
        'is_given = self._has_gap(StreamGap.parse(file.uri), file.etag or "")',
        "is_given = True",
        ("tests/unit/job/test_landed_streams.py",),
    ),
    Guard(
        "the last landed record has to come first",
        "manifests/kinesis/shard_reading.py",
        "        if self._anchor and records and records[0].sequence == self._anchor:\n",
        "        if self._anchor:\n",
        (_PLANNING,),
    ),
    Guard(
        "what was seen more than a day ago proves nothing",
        "manifests/kinesis/shard_reading.py",
        "return self._whole_since is not None and asked_at - self._whole_since < KEPT",
        "return self._whole_since is not None",
        (_PLANNING,),
    ),
    Guard(
        "an answer without records behind the tip proves nothing",
        "manifests/kinesis/shard_reading.py",
        "is_telling = bool(batch.records) or batch.is_end or not batch.behind_seconds",
        "is_telling = True",
        (_PLANNING,),
    ),
    Guard(
        "near the retention the last record has to be there when the next ones are read",
        "manifests/kinesis/shard_reading.py",
        "                    if fresh and self.now() - fresh[-1].arrived_at > self.kept:\n",
        "                    if fresh and self.now() is None:\n",
        (_PLANNING,),
    ),
    Guard(
        "a shard begins once its parents ended",
        "manifests/kinesis/lineage.py",
        "        (waiting if waits else ready).append(shard)\n",
        "        ready.append(shard)\n",
        (_PLANNING,),
    ),
    Guard(
        "behind a link of others, no link of the same chain is created",
        "manifests/linked.py",
        "        is_behind_lost = any(other.chain.folder == each.chain.folder for other in lost)\n",
        "        is_behind_lost = False\n",
        (_PLANNING,),
    ),
    Guard(
        "a shard whose link was lost is not read further from there",
        "manifests/kinesis/shards.py",
        "            self.readers[shard_id].is_done = True\n",
        "            pass\n",
        (_PLANNING,),
    ),
    Guard(
        "an object that may still get a link stays",
        "manifests/kinesis/landing.py",
        "            return last is not None and last.closes\n",
        "            return True\n",
        (_PLANNING,),
    ),
    Guard(
        "drafts that planners left are settled",
        "manifests/kinesis/planner.py",
        "            for draft in drafts:\n",
        "            for draft in ():\n",
        (_PLANNING,),
    ),
    Guard(
        "a shard that is listed no more ends with a gap",
        "manifests/kinesis/shards.py",
        "            if shard_id not in listed and head is not None and not head.closed:\n",
        "            if shard_id in ():\n",
        (_PLANNING,),
    ),
    Guard(
        "an object never looks compressed",
        "manifests/kinesis/lines.py",
        '        return b" " + text if looks_otherwise else text\n',
        "        return text\n",
        (_LINES,),
    ),
    Guard(
        "a record with line feeds is one line",
        "manifests/kinesis/lines.py",
        '                self._text += data.replace(b"\\n", b"\\r") if b"\\n" in data else data',
        "                self._text += data",
        (_LINES,),
    ),
    Guard(
        "a packed record has the checksum of its message",
        "core/kinesis/aggregation.py",
        "    if _md5(body) != digest:\n",
        "    if digest is None:\n",
        (_PACKED,),
    ),
    Guard(
        "a landed object has as many lines as were landed",
        "ops/verify/landed.py",
        "    if (lines := found[uri, etag]) not in {None, landed.lines}:\n",
        "    if (lines := found[uri, etag]) == -1:\n",
        (_VERIFYING,),
    ),
    Guard(
        "a shard is asked no more often than Kinesis allows",
        "adapters/aws/kinesis/polling.py",
        "            self.pace.wait(str(self))\n",
        "            self.pace.sleep(self.pace.call_seconds / 10)\n",
        (_LOG,),
    ),
    Guard(
        "a stream that was made again meanwhile is not taken for the former one",
        "manifests/kinesis/shards.py",
        "        if found is None or found.stream_id != expected.stream_id:\n",
        "        if found is None:\n",
        (_PLANNING,),
    ),
    Guard(
        "a retention that was lowered meanwhile may have taken records",
        "manifests/kinesis/shards.py",
        "        if found.retention < expected.retention:\n",
        "        if found.retention is None:\n",
        (_PLANNING,),
    ),
    Guard(
        "a shard that fails after some answers advances",
        "manifests/kinesis/shard_reading.py",
        "                self.trouble, self.is_done, self.empty_since = exc, True, None\n                break\n",
        "                raise\n",
        (_PLANNING,),
    ),
    Guard(
        "trouble with the beginning of a shard leaves the others alone",
        "manifests/kinesis/shards.py",
        "            self.troubles.append(exc)\n            return None\n",
        "            raise\n",
        (_PLANNING,),
    ),
    Guard(
        "of two ends of a chain, the one that was created counts",
        "manifests/linked.py",
        "each.chain.create(each.link).manifest_id == draft.manifest_id:\n",
        "each.chain.create(each.link):\n",
        (_PLANNING,),
    ),
    Guard(
        "chains of former streams end before what was landed for them goes",
        "manifests/kinesis/landing.py",
        "            if is_gone:\n",
        "            if manifest_id is None:\n",
        (_PLANNING,),
    ),
    Guard(
        "a manifest names what may be lost",
        "manifests/kinesis/landing.py",
        "            if link.gap:\n                files.append(",
        "            if link is None:\n                files.append(",
        (_PLANNING,),
    ),
    Guard(
        "a parent that was empty at the first plan tells nothing of its children",
        "manifests/kinesis/shards.py",
        "known = [each for each in landed if each.after or not was_there]",
        "known = landed",
        (_PLANNING,),
    ),
    Guard(
        "children tell of a parent that went before it was read",
        "manifests/kinesis/shards.py",
        "        gap = is_orphan or (is_late and not known)\n",
        "        gap = is_late and not known\n",
        (_PLANNING,),
    ),
    Guard(
        "a gap may be named whatever the allowed prefixes are by now",
        "core/documents/manifest_parsing.py",
        "        is_gap = is_range and is_kinesis(path)",
        "        is_gap = False",
        (_PARSING,),
    ),
    Guard(
        "a run that is to end lands what the stream has when it begins",
        "manifests/kinesis/stream_loop.py",
        "max_manifests=self.max_manifests, until=until)\n",
        "max_manifests=self.max_manifests)\n",
        (_LOOP,),
    ),
    Guard(
        "a shard that an earlier plan landed up to the bound is not read further",
        "manifests/kinesis/shards.py",
        "            is_done=self._is_landed(head),\n",
        "            is_done=False,\n",
        (_LOOP,),
    ),
    Guard(
        "what another planner left amid a shard is planned again",
        "manifests/kinesis/shards.py",
        "        self.are_overtaken |= bool(settled.lost)\n",
        "        pass\n",
        (_LOOP,),
    ),
    Guard(
        "one shard of a job lands a stream",
        "manifests/kinesis/stream_loop.py",
        "        self._let_lead(until, is_stopping)\n",
        "",
        (_LOOP,),
    ),
)
"""What keeps each record of a stream in one line of one object, and each object in one manifest."""
