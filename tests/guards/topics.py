"""Guards of ranges of topics."""

from tests.guards.guard import Guard

_PLANNING = "tests/unit/manifests/test_kafka_planning.py"
_READING = "tests/unit/ndjson/test_range_reading.py"
_CHAINS = "tests/unit/ops/verify/test_chains.py"

TOPICS = (
    Guard(
        "a link of a chain is never replaced",
        "ledger/chains/chain.py",
        "return link if self.store.create(uri, link.model_dump_json().encode()) else self._read(uri)",
        "return self.store.put(uri, link.model_dump_json().encode()) or link",
        (_PLANNING,),
    ),
    Guard(
        "two planners begin a chain at the same offset",
        "ledger/kafka/chains.py",
        "        if self.state.store.create(uri, origin.model_dump_json().encode()):\n            return earliest\n",
        "        self.state.store.create(uri, origin.model_dump_json().encode())\n        return earliest\n",
        (_PLANNING,),
    ),
    Guard(
        "the drafts of planners that died are settled",
        "manifests/kafka/planner.py",
        "                for manifest in left.settle_all():\n",
        "                for manifest in ():\n",
        (_PLANNING,),
    ),
    Guard(
        "a manifest has no range whose link another one has",
        "manifests/linked.py",
        "each.chain.create(each.link).manifest_id == draft.manifest_id",
        "each.chain.create(each.link)",
        (_PLANNING,),
    ),
    Guard(
        "a draft always becomes a manifest of the same bytes",
        "manifests/linked.py",
        'update={"files": files, **version_keys(files)}',
        'update={"files": files}',
        (_PLANNING,),
    ),
    Guard(
        "a partition whose link was lost is not planned further from there",
        "manifests/kafka/planner.py",
        "            lost |= {run.partition for run in settled.lost}\n",
        "",
        (_PLANNING,),
    ),
    Guard(
        "the id of a topic is compared after its bounds",
        "manifests/kafka/planner.py",
        "        if now is None or now.topic_id != live.topic_id:\n",
        "        if False:\n",
        (_PLANNING,),
    ),
    Guard(
        "removed records are a range of their own",
        "manifests/kafka/cutting.py",
        "    if uncut.head < earliest:\n",
        "    if False:\n",
        (_PLANNING,),
    ),
    Guard(
        "a topic whose plans fail is behind, whatever its records are",
        "manifests/kafka/topics_seen.py",
        "max(self.unplanned_seconds, self.failing_seconds, self.idle_seconds)",
        "self.unplanned_seconds",
        ("tests/unit/control/test_decisions.py",),
    ),
    Guard(
        "a cluster that does not answer is asked once for all of its topics",
        "manifests/kafka/topic_loop.py",
        "                may_be_down = turn.error is not None\n",
        "                may_be_down = False\n",
        ("tests/unit/manifests/test_topic_loop.py",),
    ),
    Guard(
        "an error that no loop was expected to raise ends no planning",
        "job/delivery/planning.py",
        "except Exception as exc:  # noqa: BLE001 - without this thread, nothing would be planned any more",
        "except ZeroDivisionError as exc:",
        ("tests/unit/job/test_topic_planning.py",),
    ),
    Guard(
        "a value does not pass for the key of its record",
        "ndjson/files/record_values.py",
        'return before + (b"" if is_empty else b",") + fields + b"}"',
        'return b"{" + fields + (b"" if is_empty else b",") + record[1:]',
        ("tests/unit/ndjson/test_record_values.py",),
    ),
    Guard(
        "the fields of a record go to its own line, also behind one that is too long",
        "ndjson/files/record_values.py",
        "                self.values.pass_over(reject.line_number - 1)\n",
        "                pass\n",
        ("tests/unit/ndjson/test_record_values.py",),
    ),
    Guard(
        "a manifest waits until it is full or its oldest record has waited long enough",
        "manifests/kafka/planner.py",
        "            groups = [each for each in groups if each.is_full]\n",
        "            pass\n",
        ("tests/unit/manifests/test_topic_loop.py",),
    ),
    Guard(
        "the timestamp of a producer does not make a record older than it can be",
        "manifests/kafka/arrivals.py",
        "came if known.not_before is None else max(came, known.not_before)",
        "came",
        ("tests/unit/manifests/test_topic_loop.py",),
    ),
    Guard(
        "the words of a client that refuses properties are not told",
        "adapters/kafka/errors.py",
        "        ) from None\n",
        "        ) from exc\n",
        ("tests/unit/adapters/test_kafka_properties.py",),
    ),
    Guard(
        "lines of a manifest that could not be searched are kept",
        "ops/forget/forgetter.py",
        "        needed |= scan.unsearched\n",
        "",
        ("tests/unit/ops/forget/test_forgetting.py",),
    ),
    Guard(
        "a manifest that is taken in while its chain is verified is found",
        "ops/verify/chains.py",
        "            found = _runs_of(chains.state, link.manifest_id)  # a job may have taken it in meanwhile\n",
        "",
        (_CHAINS,),
    ),
    Guard(
        "each offset without a record has its line",
        "ndjson/files/range_reading.py",
        '                lines.append(b"\\n" * (offset - self.next_offset - 1))\n',
        "",
        (_READING,),
    ),
    Guard(
        "a value of several lines is one line",
        "ndjson/files/range_reading.py",
        'value.replace(b"\\n", b"\\r") if b"\\n" in value else value',
        "value",
        (_READING,),
    ),
    Guard(
        "a range without proof of its end is no result",
        "ndjson/files/range_reading.py",
        "    if read.position < wanted.end:\n",
        "    if False:\n",
        (_READING,),
    ),
    Guard(
        "a manifest has no range that no plan has given to it",
        "job/steps/intake.py",
        "        check_planned(self.state, manifest, info.uri)\n",
        "",
        ("tests/unit/job/test_planned_ranges.py",),
    ),
    Guard(
        "what compaction of a topic removes later is no discrepancy",
        "ops/verify/contents.py",
        "opened.read.absent > file.kafka.absent",
        "False",
        ("tests/unit/engines/test_kafka_ranges.py",),
    ),
    Guard(
        "a gap in a chain is found",
        "ops/verify/chains.py",
        "        if link.first != expected:\n",
        "        if False:\n",
        (_CHAINS,),
    ),
)
"""What keeps each offset in one manifest, and under its line number."""
