"""A table has the files of each manifest once, and what is done is in it."""

from tests.guards.guard import Guard

_COMMITTER = "tests/unit/table/test_committer.py"
_REFUSED = "tests/unit/table/test_refused_batches.py"
_SQL = "tests/contract/test_refused_batches.py"
_JOB = "tests/unit/job/test_table_sink.py"
_REBUILD = "tests/unit/ops/rebuild/test_rebuilt_tables.py"
_VERIFY = "tests/unit/ops/verify/test_verified_table.py"
_STATUS = "tests/unit/ops/status/test_table_seen.py"

_UPKEEP = "tests/unit/table/test_upkeep.py"
_MAINTAINER = "tests/unit/ops/table/test_maintainer.py"
_MERGES = "tests/unit/table/test_merges.py"
_MERGER = "tests/unit/ops/table/test_merger.py"

TABLE = (
    Guard(
        "a merge is never taken once other files were replaced",
        "table/committer.py",
        "if any(self._replaces_files(number) for number in range(merge.base + 1, head.fence + 1)):",
        "if False:",
        (_MERGES + "::test_what_was_begun_before_a_rebuild",),
    ),
    Guard(
        "a merged file takes the place of whole files of the table",
        "table/changes.py",
        "if found is not None and {uri for each in inputs.values() for uri in each} == uris:",
        "if found is not None:",
        (_MERGES + "::test_a_merge",),
    ),
    Guard(
        "a rebuild takes merged files apart",
        "table/changes.py",
        "        if removed:\n            back, apart",
        "        if False:\n            back, apart",
        (_MERGES + "::test_a_rebuild_takes_merged_files_apart",),
    ),
    Guard(
        "a merged file is not taken apart while a part of it is gone",
        "table/committer.py",
        "if (uri := next((uri for uri in replaced.merged_with(own) if store.stat(uri) is None), None)) is not None:",
        "if False:",
        (_MERGES + "::test_a_part_that_is_gone",),
    ),
    Guard(
        "merged files stay as long as the table may get them",
        "ops/table/merged_leftovers.py",
        "may_go = [info for info in found if ended.has(self.state.layout.merge_of(info.uri))]",
        "may_go = found",
        (_MERGER + "::test_files_of_another_merger",),
    ),
    Guard(
        "merged files stay as long as a snapshot has them",
        "ops/table/merged_leftovers.py",
        "gone = [info for info in may_go if info.uri not in named]",
        "gone = may_go",
        (_MERGER + "::test_late_files_are_merged_again",),
    ),
    Guard(
        "a snapshot is as old as the one that took its place",
        "table/upkeep.py",
        "(later is not None and by_id[later].made_at > after)",
        "by_id[number].made_at > after",
        (_UPKEEP,),
    ),
    Guard(
        "upkeep leaves files to a change that may still land",
        "table/upkeep.py",
        "before = min(now - SAFE_AGE, folder.current_since - CLOCKS_DIFFER)",
        "before = now - SAFE_AGE",
        (_MAINTAINER + "::test_a_batch_that_lands_late",),
    ),
    Guard(
        "upkeep leaves files that are young",
        "table/upkeep.py",
        "before = min(now - SAFE_AGE, folder.current_since - CLOCKS_DIFFER)",
        "before = folder.current_since - CLOCKS_DIFFER",
        (_MAINTAINER + "::test_what_a_failed_commit_left",),
    ),
    Guard(
        "upkeep leaves files that commits do not name so",
        "table/upkeep.py",
        "if each.name not in named and _WRITTEN_BY_COMMITS.fullmatch(each.name))",
        "if each.name not in named)",
        (_UPKEEP,),
    ),
    Guard(
        "upkeep leaves a table that lacks batches which were in it",
        "ops/table/maintainer.py",
        "if head.fence < finished:",
        "if False:",
        (_MAINTAINER + "::test_a_table_of_another_ledger",),
    ),
    Guard(
        "a rebuild of the table takes in what is behind a manifest that is held back",
        "ops/table/keeper.py",
        "elif progress.refused is None and gone.isdisjoint(left):",
        "elif progress.refused is None and not progress.visible:",
        ("tests/unit/ops/table/test_keeper.py::test_a_lost_table_whose_first_file_is_gone",),
    ),
    Guard(
        "the fence is read again after a change without an answer",
        "table/applying.py",
        "if now.fence >= batch.number:",
        "if False:",
        (_COMMITTER + "::test_three_committers_at_every_step",),
    ),
    Guard(
        "of two batches of one number, the first one is valid",
        "ledger/table/batches.py",
        "if self.store.create(self.layout.table_batch(number), _json(made)):",
        "if self.store.put(self.layout.table_batch(number), _json(made)) is None:",
        (_COMMITTER + "::test_three_committers_at_every_step",),
    ),
    Guard(
        "a batch leaves out what is done",
        "table/committer.py",
        "if not self.adopts and self.state.ledger.is_done(placed.key, placed.generation):",
        "if False:",
        (_COMMITTER + "::test_three_committers_at_every_step",),
    ),
    Guard(
        "a batch is finished once all of its manifests are done",
        "table/named.py",
        "not self.ledger.is_done(last.key, last.generation)",
        "False",
        (_COMMITTER + "::test_three_committers_at_every_step",),
    ),
    Guard(
        "files that a rebuild replaced and deleted are not added to a table that is made again",
        "table/changes.py",
        "if not is_superseded or store.stat(file.final) is not None:",
        "if True:",
        (_COMMITTER + "::test_a_table_that_was_lost",),
    ),
    Guard(
        "what the table passed over is on record before anything else",
        "table/named.py",
        "if 0 < refused == fence:",
        "if False:",
        (_REFUSED + "::test_a_process_that_says_no_reason",),
    ),
    Guard(
        "too few refusals blame no batch, although the tries of a call are used up",
        "table/applying.py",
        "if refusals >= REFUSALS if isinstance(failure, TableRefused) else tried == TRIES:",
        "if tried == TRIES or refusals >= REFUSALS:",
        (_REFUSED + "::test_too_few_refusals_among_other_failures",),
    ),
    Guard(
        "a batch that was passed over names nothing",
        "table/named.py",
        "is_refused = number <= refused and self.batches.refused.has(number)",
        "is_refused=False",
        (_REFUSED + "::test_one_of_many",),
    ),
    Guard(
        "what refused batches had goes on in smaller ones",
        "table/named.py",
        "half = max(1, len(batch.manifests) // 2)",
        "half = len(batch.manifests)",
        (_REFUSED + "::test_one_of_many",),
    ),
    Guard(
        "who sent a batch learns that it was passed over",
        "table/applying.py",
        "is_refused = batch.number == now.refused or self.batches.refused.has(batch.number)",
        "is_refused = False",
        (_REFUSED + "::test_three_committers_at_every_step",),
    ),
    Guard(
        "what is held back is in no batch",
        "table/committer.py",
        "self._held_back(placed) or ",
        "",
        (_REFUSED + "::test_who_comes_later_waits_for_none_of_it",),
    ),
    Guard(
        "a batch is not passed over for answers that do not tell",
        "table/applying.py",
        "except (TableRefused, RecordUnreadable) as error:",
        "except (TableRefused, RecordUnreadable, TableCommitUnknown) as error:",
        (_REFUSED + "::test_an_unknown_answer_is_no_refusal",),
    ),
    Guard(
        "where a catalog refuses more and more, nothing more is held back",
        "table/applying.py",
        "self.batches.refused.due() >= MAX_HELD",
        "False",
        (_REFUSED + "::test_too_many_are_no_exception",),
    ),
    Guard(
        "what any change would meet is blamed on no batch",
        "adapters/iceberg/iceberg_table.py",
        "            Specs(table.metadata, table.schema())",
        "            pass",
        (_SQL + "::test_a_table_with_other_partitions_blames_no_batch",),
    ),
    Guard(
        "the fence of another state's table says nothing of these batches",
        "table/committer.py",
        "if head.owner != owner:",
        "if False:",
        (_COMMITTER + "::test_a_table_of_another_state",),
    ),
    Guard(
        "a table that was made again takes nothing before a person says so",
        "table/named.py",
        "if fence < self._finished:",
        "if False:",
        (_COMMITTER + "::test_a_table_that_was_lost",),
    ),
    Guard(
        "files that a rebuild replaces stay until the table has others",
        "job/steps/publication.py",
        "if self.table is None:  # else its readers",
        "if True:  # else its readers",
        (_REBUILD + "::test_new_names_in_one_change",),
    ),
    Guard(
        "a rebuild gives no rows a name that a table lists",
        "ops/rebuild/rebuilder.py",
        "reuses_names = self.publisher.table is None",
        "reuses_names = True",
        (_REBUILD + "::test_new_names_in_one_change",),
    ),
    Guard(
        "no further manifest is begun while too many wait for the table",
        "job/batches.py",
        " or self._is_held()",
        "",
        (_JOB + "::test_no_more_than_so_many_wait",),
    ),
    Guard(
        "the end of a run commits what is placed",
        "job/service.py",
        "                    self.table.close()\n",
        "                    pass\n",
        (_JOB + "::test_a_stop_commits_what_is_placed",),
    ),
    Guard(
        "sums of closed dates that differ from those of the table are looked into",
        "ops/verify/verifier.py",
        "if not listed.found.error and (listed.summed_files, listed.summed_rows) != summed:",
        "if False:",
        (_VERIFY + "::test_closed_dates_by_their_sums",),
    ),
    Guard(
        "the files of before are no surplus in the table while a rebuild is open",
        "ops/verify/table/doubts.py",
        "is_allowed = commit.generation > 1 and not found.is_done",
        "is_allowed = False",
        (_VERIFY + "::test_an_open_rebuild",),
    ),
    Guard(
        "what was rebuilt since the ledger was read is not missing in the table",
        "ops/verify/table/doubts.py",
        "and not is_superseded(state, each.commit)",
        "",
        (_VERIFY + "::test_beside_a_rebuild",),
    ),
    Guard(
        "a manifest that waits for the table for too long is named",
        "ops/verify/table/files.py",
        "if found.waiting_seconds > self.table.late_seconds:",
        "if False:",
        (_VERIFY + "::test_what_waits_for_the_table",),
    ),
    Guard(
        "what is held back from the table is a discrepancy, and does not wait",
        "ops/verify/table/held.py",
        "if held is None:",
        "if True:",
        (_VERIFY + "::test_what_is_held_back",),
    ),
    Guard(
        "what was held back and is rebuilt while it is verified is no discrepancy",
        "ops/verify/table/held.py",
        "if is_superseded(state, commit):",
        "if False:",
        (_VERIFY + "::test_what_is_rebuilt_while_it_is_verified",),
    ),
    Guard(
        "what was held back and rebuilt needs no person any more",
        "ledger/table/refused_batches.py",
        "return held is not None and self.is_due(held)",
        "return held is not None",
        (_STATUS + "::test_what_is_held_back",),
    ),
    Guard(
        "failures are counted over the end of a run",
        "ledger/table/progress.py",
        "if self._last is None:",
        "if False:",
        (_STATUS + "::test_a_catalog_that_is_down",),
    ),
)
