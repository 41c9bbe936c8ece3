"""A manifest takes effect once, and is verified before it does."""

from tests.guards.guard import Guard

_COMPACTION = "tests/unit/job/test_compaction.py"
_BATCHES = "tests/unit/job/test_batches.py"
_MANIFEST = "tests/unit/core/test_manifest.py"
_STAGED_FILES = "tests/unit/engines/test_staged_files.py"
_CRASHES = "tests/faults/test_crash_points.py"
_NATIVE_SUMS = "tests/unit/ops/verify/test_native_sums.py"

VERIFICATION = (
    Guard(
        "a kernel that misreads lines is found out",
        "ops/verify/values/native_sums.py",
        "Sum(*found) != slow.sum",
        "False",
        (_NATIVE_SUMS,),
    ),
    Guard(
        "each row counts for its own source",
        "ops/verify/values/native_sums.py",
        "return runs.values.to_pylist(), runs.run_ends.to_pylist()",
        "return runs.values.to_pylist()[:1], [len(sources)]",
        ("tests/unit/ops/verify/test_verify.py::test_row_moved_to_another_source",),
    ),
    Guard(
        "Python reads few of the lines that a kernel has read",
        "ops/verify/values/native_sums.py",
        "end - start <= self._sampled_bytes_left",
        "True",
        (_NATIVE_SUMS,),
    ),
    Guard(
        "a file whose rows are there twice is found",
        "ops/verify/verifier.py",
        "                    doubled.add(records.outcome)\n",
        "                    pass\n",
        ("tests/unit/ops/verify/test_doubled.py",),
    ),
    Guard(
        "the rows in the footers are the records that were inspected",
        "engines/staged_files.py",
        "    found = sum(file.facts.rows for file in files)\n    if found != expected:\n",
        "    found = sum(file.facts.rows for file in files)\n    if False:\n",
        (_STAGED_FILES,),
    ),
    Guard(
        "the columns in the footers are those of the schema",
        "engines/staged_files.py",
        "    if facts.columns != columns:\n",
        "    if False:\n",
        (_STAGED_FILES,),
    ),
    Guard(
        "the types in the footers are those of the schema",
        "engines/staged_files.py",
        '        if found != expected:\n            raise StagingError(f"{where} has column {name!r} of type',
        '        if False:\n            raise StagingError(f"{where} has column {name!r} of type',
        (_STAGED_FILES,),
    ),
    Guard(
        "rows, rejects and blank lines of each file are its lines",
        "engines/staged_files.py",
        "        if accounted != report.lines:\n",
        "        if False:\n",
        (_STAGED_FILES,),
    ),
    Guard(
        "every file of the manifest is reported on",
        "engines/staged_files.py",
        "    if named != reported:\n",
        "    if False:\n",
        (_STAGED_FILES,),
    ),
    Guard(
        "nothing is decided, and so published, before it was verified",
        "job/steps/staging.py",
        "outputs, rejects = verify_staged(self.state.store, manifest, staged, self.rules.metadata_columns)",
        "from compactor.engines.staged_files import parquet_facts as facts\n"
        "        outputs = [VerifiedFile(each.uri, facts(self.state.store, each.uri)) for each in staged.outputs]\n"
        "        rejects = [VerifiedFile(uri, facts(self.state.store, uri)) for uri in staged.rejects]",
        (_COMPACTION + "::test_staging_that_does_not_add_up",),
    ),
    Guard(
        "done is put on record after all is in its final place, not before",
        "job/steps/publication.py",
        "            if not self._publish(outcome) and (newer := self._superseding(outcome)) is not None:\n",
        "            self.state.ledger.finish(outcome.key)\n"
        "            if not self._publish(outcome) and (newer := self._superseding(outcome)) is not None:\n",
        (_COMPACTION + "::test_death_at_each_step",),
    ),
    Guard(
        "a death between publication and done loses nothing, with real processes",
        "job/steps/publication.py",
        "            if not self._publish(outcome) and (newer := self._superseding(outcome)) is not None:\n",
        "            self.state.ledger.finish(outcome.key)\n"
        "            if not self._publish(outcome) and (newer := self._superseding(outcome)) is not None:\n",
        (_CRASHES,),
    ),
)

ONCE = (
    Guard(
        "a URI that comes twice in a batch is worked on once",
        "job/delivery/work_queue.py",
        "        if work.place in self._known:\n",
        "        if False:\n",
        ("tests/unit/job/test_work_queue.py",),
    ),
    Guard(
        "a manifest that comes under two names in a batch is worked on once",
        "job/delivery/work_queue.py",
        "        if work.manifest_id in self._later:\n",
        "        if False:\n",
        ("tests/unit/job/test_work_queue.py",),
    ),
    Guard(
        "a file that a manifest names twice is not compacted twice",
        "core/documents/manifest_parsing.py",
        "        if path in seen:\n",
        "        if False:\n",
        (_MANIFEST,),
    ),
    Guard(
        "a done manifest is a no-op",
        "job/steps/compaction.py",
        "        if found.outcome is not None and found.is_done:\n",
        "        if False:\n",
        (_BATCHES,),
    ),
    Guard(
        "a decided manifest is rolled forward, not worked on again",
        "job/steps/compaction.py",
        "        if found.outcome is not None:\n            return _Decision(found.outcome)\n",
        "",
        (_COMPACTION + "::test_decided_is_not_worked_on_again",),
    ),
    Guard(
        "a driver whose staging was cleaned up under it finds that it lost",
        "job/steps/compaction.py",
        "            if decided is not None:\n",
        "            if False:\n",
        (_COMPACTION + "::test_two_drivers",),
    ),
    Guard(
        "a driver that finds staging gone looks for done",
        "job/steps/publication.py",
        "        if self.state.ledger.is_done(commit.key, commit.generation):\n",
        "        if False:\n",
        ("tests/unit/job/test_publication.py",),
    ),
    Guard(
        "a manifest object that says something else by now is not removed",
        "job/steps/publication.py",
        "        if self._is_unchanged(uri, fingerprint):\n",
        "        if True:\n",
        ("tests/unit/job/test_publication.py",),
    ),
)
