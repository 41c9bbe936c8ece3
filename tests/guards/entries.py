"""The guards: by the tests that have to notice, what is taken out at the mark of each name; see `marks`."""

from collections.abc import Mapping

GUARDED: Mapping[str, Mapping[str, str]] = {
    # These only the simulation is asked to find missing.
    "": {
        "a message is redelivered if its group was not written": "Written(group)",
        "staging stays if the write of its outcome got no answer": "self.stager.discard(accepted, attempt); ...",
        "an id is bound once": "self._store.put(uri, record.to_json()) is None",
        "staging is deleted after done is on record": "self.delete_staging(outcome.manifest_id, upto=1); ...",
    },
    "tests/contract/test_claims.py": {
        "claims are not read from a journal with a gap": "False",
        "a key in an indexed block of claims is not free": "pass",
    },
    "tests/contract/test_job_runs.py": {
        "a start that meets a run is an outcome": "False",
    },
    "tests/contract/test_local_links.py": {
        "no folder of the path is a link": "enter(name, at, 0)",
        "the deleted file is the version that was checked, even if its path has changed": "False",
    },
    "tests/contract/test_local_store.py": {
        "a deleted temporary file is not used": "-last",
        "the kernel tells whether the writer of a temporary lives": "pass",
        "a file held by a living process is not a leftover": "True",
    },
    "tests/contract/test_native_requests.py": {
        "a native read accepts only the range that was asked for": "status == 206",
        "processes share no connection": "self._client is None",
    },
    "tests/contract/test_object_store.py": {
        "a record in S3 is created once, never overwritten": "-IfNoneMatch",
    },
    "tests/contract/test_s3_store.py": {
        "a copy counts only once it exists": "True",
        "a multipart copy counts only once it exists": "True",
        "bytes of a different range are refused": "False",
    },
    "tests/contract/test_s3_writer.py": {
        "a new object on S3 never replaces an existing one": "{}",
        "a writer tells its own object from another writer's": "True",
        "a writer recognises its object after a lost response": "raise",
        "an upload counts only once its object exists": "False",
    },
    "tests/contract/test_table_partitions.py": {
        "a table has the partitions that its files are entered with": "False",
        "a file in the wrong partition of the table is a discrepancy": "False",
    },
    "tests/contract/test_table_upkeep.py": {
        "the files of a dropped table stay": "False",
    },
    "tests/end_to_end/test_hostile_names.py": {
        "what commands print is escaped": "mark + '\\n'.join(lines)",
        "JSON is escaped, too": "text",
    },
    "tests/faults/test_two_drivers.py": {
        "the losing driver reads the valid outcome": "outcome",
    },
    "tests/unit/adapters/test_iceberg_catalogs.py": {
        "an ambiguous answer is not a refusal": "status not in _MAY_PASS",
        "a table made by a person is left alone": "False",
    },
    "tests/unit/adapters/test_iceberg_files.py": {
        "a file has the rows that the ledger names": "False",
        "a file has the field ids and the types of the table": "False",
        "a file has the date of its partition in each row": "False",
    },
    "tests/unit/adapters/test_iceberg_upkeep.py": {
        "merged manifests have the same files": "False",
    },
    "tests/unit/adapters/test_fair_threads.py": {
        "no source holds all threads": "False",
    },
    "tests/unit/cli/test_cli_erase.py": {
        "a new version of one file does not restore erased lines of others": "False",
    },
    "tests/unit/core/test_attempts.py": {
        "a transient failure does not count": "True",
        "an attempt of a living run is not a death": "-last",
    },
    "tests/unit/core/test_manifest.py": {
        "a file that a manifest names twice is not compacted twice": "False",
        "a manifest cannot name files outside the allowed prefixes": "False",
    },
    "tests/unit/core/test_partitions.py": {
        "no value leads out of its folder": "value",
    },
    "tests/unit/core/test_safe_text.py": {
        "a suggested command is quoted": "word",
    },
    "tests/unit/engines/test_bin_task.py": {
        "rows of a broken file are withdrawn, or the pass is repeated": "pass",
        "a pass with rows of a refused file is discarded": "False",
        "rows are staged only with a column for each of their keys": "-last",
        "the kernel alone cannot refuse a line that inspection accepts": "False",
    },
    "tests/unit/engines/test_input_files.py": {
        "a file with a different ETag is not read": "False",
        "a file with a different size is not read": "False",
        "all ranges of a file are of one version": "-etag",
        "a task whose files decode to far more than they should leaves the rest to a later manifest": "False",
        "a task whose lines take far longer to match than they should leaves the rest to a later manifest": "False",
    },
    "tests/unit/engines/test_partitioned_engine.py": {
        "a partition's file written in place overwrites no other": "store.put(uri, data) is not None",
        "each partition has the rows counted before the split": "False",
        "no row is lost in the split into partitions": "False",
    },
    "tests/unit/engines/test_staged_files.py": {
        "the rows in the footers are the records that were inspected": "False",
        "the columns in the footers are those of the schema": "False",
        "the types in the footers are those of the schema": "False",
        "rows, rejects and blank lines of each file are its lines": "False",
        "every file of the manifest is reported on": "False",
    },
    "tests/unit/job/test_batches.py": {
        "a done manifest is a no-op": "False",
    },
    "tests/unit/job/test_deferred.py": {
        "deferred files are redriven before done is on record": "False",
        "deferred files are redriven once": "if redrive is None: continue",
    },
    "tests/unit/job/test_compaction.py": {
        "nothing is decided or published before it is verified": (
            "verified = partial(parquet_facts, store); "
            "return [verified(each.uri) for each in staged.outputs], [verified(uri) for uri in staged.rejects]"
        ),
        "done is recorded only after all files are in their final places": "self.state.ledger.finish(outcome.key); ...",
        "a decided manifest is rolled forward, not worked on again": "False",
        "a driver whose staging was deleted notices that it lost": "False",
        "an attempt is on record before its work starts": "True",
        "a manifest that kills its driver each time runs out of attempts": "False",
        "open manifests are found again after a death": "pass",
    },
    "tests/unit/upkeep/test_expiring.py": {
        "a rebuild never uses a name of expired rejects again": "previous.rejects",
        "nothing else of a kind expires while a deletion is refused": "pass",
    },
    "tests/unit/job/test_in_place.py": {
        "a file in place that a commit lists is not an orphan": "Fate.ORPHANED",
        "a file in place is judged by the outcome of its own generation": "self._named(key, 1)",
        "nothing in place is deleted before its manifest is decided": "''",
        "orphans in the output stay for a day": "0.0",
        "a manifest that is done leaves no orphans": "False",
        "a rebuild names what it wrote in place where it is": "pass",
        "an erasure deletes orphans": "False",
    },
    "tests/unit/job/test_intake.py": {
        "an id is bound to its first manifest for good": "record",
        "a different manifest under a used id is refused, not treated as a repeat": "-last",
    },
    "tests/unit/job/test_landed_streams.py": {
        "a duplicate is settled once the planned manifest is committed, not before": "True",
        "a manifest has only gaps that a link gives to it": "True",
    },
    "tests/unit/job/test_partitioned_output.py": {
        "a file is in a partition of the table only if all its rows are": "-last",
        "a row in the wrong partition's folder is a discrepancy": "pass",
        "a rebuild reuses no name of a partition": "pass",
    },
    "tests/unit/job/test_landed_manifests.py": {
        "a manifest has only ranges that a plan gave to it": "pass",
        "a draft is deleted once a job has started its manifest": "pass",
        "a planned manifest that is lost is found": "pass",
        "a redrive has what its record has": "-last",
    },
    "tests/unit/job/test_publication.py": {
        "a driver that finds its staging deleted looks for done": "False",
        "a manifest object that was changed is not removed": "True",
    },
    "tests/unit/job/test_rotating_source.py": {
        "a failed batch ends the stream, so that its manifests are redelivered": "not old.is_leaving",
    },
    "tests/unit/job/test_shards.py": {
        "a manifest that a different shard took is not started": "False",
        "what a living run works on is left to it": "False",
        "a job that was paused takes nothing before its heartbeat is seen again": "True",
    },
    "tests/unit/job/test_shared_slots.py": {
        "no source holds all slots": "False",
    },
    "tests/unit/job/test_verified_work.py": {
        "a failed write of the outcome is never held against the manifest": "pass",
        "verified work is not repeated": "False",
        "a verified commit is only decided with all its staged files": "-last",
        "verified work with a damaged record is repeated": "pass",
    },
    "tests/unit/job/test_work_queue.py": {
        "a URI listed twice in a batch is processed once": "False",
        "a manifest under two names in a batch is processed once": "False",
        "the spare slot is for a source that has none in flight": "self._fresh.pop()",
    },
    "tests/unit/sources/inventory/test_planning_from_inventory.py": {
        "an earlier version of an object is not planned": "False",
        "a file in a manifest without claims is not planned again": "list(files)",
        "files planned while others were held back are not planned again": "group",
        "manifests that arrive during a back-fill are searched": "-last",
        "what a dead planner has claimed is planned later": "pass",
    },
    "tests/unit/sources/test_building.py": {
        "no manifest names two versions of one object": "-one_entry_each",
    },
    "tests/unit/sources/test_building.py tests/unit/sources/test_building_races.py": {
        "what a planner could not claim is left to its holder": "group",
    },
    "tests/unit/sources/test_building_failures.py": {
        "a written manifest counts only once it is bound": "'exists'",
    },
    "tests/unit/sources/test_building_failures.py tests/unit/sources/test_building_races.py": {
        "a message is redelivered if another planner may still write its file": "{}",
        "a planner whose id was revoked acknowledges nothing": "False",
    },
    "tests/unit/sources/test_matching.py": {
        "a version under two names is that of one file": "each.uri == canonical(file.uri)",
        "a renamed file has the bytes of the earlier one": "-last",
        "a file that is there under its old name was not renamed": "True",
    },
    "tests/unit/sources/test_matching.py tests/unit/cli/test_cli_folder.py": {
        "rewritten bytes of the same length and time are noticed": "False",
    },
    "tests/unit/sources/test_folder_life.py": {
        "of a file that grew, only the new lines are taken": "(part := None)",
        "a rotated log is not a replaced file": "self._used",
        "a log that went on under another name may go on from there": "True",
        "a log that begins like the one before was not just touched": "reversed(rows)",
        "a log that begins like the one before is new": "2",
        "the lines after a version may be in a file that is known": "pass",
        "a version that is back may leave again": "pass",
    },
    "tests/unit/sources/test_grown_files.py": {
        "a version that was continued is not continued again": "False",
        "a file with the bytes of one that was removed is a new one": "True",
        "a log compressed after its rotation is not a new file": "yield from ()",
        "a line that continues is not split": "False",
        "a line that a buffering writer goes on with is not split": "None",
        "two ranges that begin at the same byte are the same lines": "(part := None)",
    },
    "tests/unit/sources/test_grown_files.py tests/unit/sources/test_folder_life.py": {
        "a file that begins with a version of a deleted file is not new": "False",
    },
    "tests/unit/sources/test_handed_over.py": {
        "a draft stays until a job has started its manifest": "[self._draft(planned.manifest_id)]",
        "what is planned for an id that something else has becomes a redrive": "(planned, True)",
        "a redrive whose id is in use gets nothing from a plan": "-last",
        "a plan gives nothing to a redrive that another one has": "list(planned.files)",
    },
    "tests/unit/sources/test_kinesis_planning.py": {
        "the end of a closed shard is queried": "False",
        "the last landed record must come first": "self._anchor",
        "what was seen more than a day ago proves nothing": "-last",
        "a shard begins once its parents ended": "False",
        "behind a link of others, no link of the same chain is created": "False",
        "an object that may still get a link stays": "last",
        "drafts that planners left are settled": "()",
        "a shard that is listed no more ends with a gap": "False",
        "a manifest names what may be lost": "link is None",
        "the id of a log is compared after reading it": "False",
    },
    "tests/unit/sources/test_many_dates.py": {
        "a plan looks under the day of a file's arrival, which it had before the window of dates was changed": "found",
        "a plan looks under the date in a file's name, which it had before the window of dates was changed": "False",
    },
    "tests/unit/sources/test_topic_landing.py": {
        "a link of a chain is never replaced": "self.store.put(uri, link.to_json()) or link",
        "a manifest has nothing whose link another one has": "bool(self._chain(link).create(link))",
        "a log that tells what it has left tells a gap": "False",
    },
    "tests/unit/sources/test_patient_planning.py": {
        "lines of a file that is being written are taken once they were there for a while": "waits or end is None",
        "a file with holes is not read while it is written": "False",
        "two planners do not take lines of a growing file at once": "not self.of.takes_grown",
        "bytes of a file that may grow are those that were planned": "False",
    },
    "tests/unit/sources/test_planning.py": {
        "nothing outside the allowed prefixes is planned": "False",
        "files that another planner claimed are left to it while its lease lasts": "False",
        "a late manifest whose files were taken over never takes effect": "holder_states[other] = 'revoked'; continue",
    },
    "tests/unit/sources/test_routing.py": {
        "the state of an id is read from its own stream's ledger": "(self, holder)",
        "a plan leaves the files of other streams": '""',
    },
    "tests/unit/sources/test_sealing.py tests/unit/sources/test_building_races.py": {
        "a revoked part is never sealed": "group.only(readable)",
    },
    "tests/unit/ops/closing/test_closing.py": {
        "a done manifest is marked for the next summary": "pass",
        "of two processes that close a date at once, one gives up": "False",
        "a manifest is in no summary twice": "True",
        "an earlier summary's share of a rebuilt manifest is subtracted": "verified",
        "a date with a discrepancy stays open": "False",
        "items settled by an earlier summary are not listed as open": "self.summary.letters, self.summary.quarantined",
        "file versions are compared with those of all summaries": "False",
    },
    "tests/unit/ops/closing/test_interrupted_redrives.py": {
        "a summary names what was redriven until the redrive is accepted": "False",
    },
    "tests/unit/ops/erase/test_erase_inputs.py": {
        "a file replaced since the search is not deleted": "self.state.store.delete([held.uri])",
    },
    "tests/unit/ops/erase/test_erase_races.py": {
        "a manifest that another rebuild decided meanwhile does not count as erased": "False",
        "a version of an input file that was not compacted is not deleted": "False",
    },
    "tests/unit/ops/erase/test_erasing.py": {
        "the input of a manifest that could not be erased is not deleted": "pass",
        "lines of a manifest that could not be searched are kept": "pass",
    },
    "tests/unit/ops/rebuild/test_open_markers.py": {
        "each rebuild attempt has its own marker": "''",
        "the marker of a rebuild that may still decide is not forgotten": "-last",
        "a decision made since the scan keeps its marker": "-last",
    },
    "tests/unit/ops/rebuild/test_rebuild.py": {
        "what could double rows is deleted before the files of a rebuild are published": "pass",
        "clean-up leaves the staging of a rebuild": "-if",
        "a driver that finds an older commit's staging deleted looks for a rebuild": "False",
        "a file of an earlier generation does not count as published": "-last",
    },
    "tests/unit/ops/rebuild/test_rebuild_held_up.py": {
        "what is left of earlier staging is deleted before a rebuild chooses its names": "pass",
        "what is left of earlier staging is deleted before a rebuild is published": "pass",
        "the cleaner leaves what a rebuild has staged and not decided": "False",
    },
    "tests/unit/ops/rebuild/test_rebuild_refused.py": {
        "quarantined files are not compacted by a rebuild": "list(commit.files)",
        "rows that differ from the first commit are refused": "pass",
        "a different version of the input is refused": "True",
    },
    "tests/unit/ops/rebuild/test_rebuilt_tables.py": {
        "files that a rebuild replaces stay until the table has others": "True",
        "a rebuild reuses no file name that a table lists": "True",
    },
    "tests/unit/ops/rebuild/test_replacing.py": {
        "a replaced file has rows of its new version before it counts as rebuilt": "False",
        "a new version is claimed while its rows are made": "self.claimer.claim([], holder)",
    },
    "tests/unit/ops/redrive/test_redriving_held_up.py": {
        "a redrive that was held up leaves the claims of a later one": "-last",
    },
    "tests/unit/ops/redrive/test_taken_over.py": {
        "a duplicate of a producer's manifest is not settled with it": "pass",
    },
    "tests/unit/ops/expire/test_expiring.py": {
        "an intention is on record before anything expires, so that the next run finishes it": "pass",
        "what expires is on record before it is deleted": "begun",
        "the files of a manifest that is open are left to the next run": "(same, [])",
        "a rebuild gives up if its rows expired meanwhile": "pass",
        "a file deleted without a record is missing": "True",
        "redriven lines that were quarantined stay": "False",
    },
    "tests/unit/ops/table/test_half_made_again.py": {
        "only a re-creation of a lost table applies several batches": "False",
        "manifests that wait for a lost table create no new one": "False",
        "the last batch of a lost table gets its rows back from any process": "True",
        "a merge that the table never had is not restored": "True",
    },
    "tests/unit/ops/table/test_keeper.py": {
        "a repair of the table does without rows that expired": "-is_expired",
    },
    "tests/unit/ops/table/test_merger.py": {
        "a damaged merge holds back a manifest whose rows may be in it": "False",
        "merged files stay as long as the table may get them": "found",
    },
    "tests/unit/ops/table/test_metadata_eraser.py": {
        "an interrupted erasure finds the table metadata to remove": "sorted(before.named)",
        "an erasure keeps metadata that the table needs": "{*names}",
    },
    "tests/unit/ops/table/test_released_originals.py": {
        "a merged file with the only copy of rows stays": "set[str]()",
        "files that were merged stay for a day": "True",
        "files that were merged stay until their manifests are done": "True",
        "merged originals are deleted only after a batch that allows it": "some",
        "the new place of rows is recorded before merged originals are deleted": "pass",
        "a rebuild rewrites the remaining rows of a merged file": "None",
        "a merged file takes over from the one before that alone has rows": "pass",
        "a merge started before originals may be deleted is never applied": "-last",
        "a merged file is not split if its parts may be deleted": "False",
        "a re-created table waits for the merged file that has the rows": "-is_moved",
        "rows are verified in the merged file that has the only copy": "facts if moved is None else ''",
    },
    "tests/unit/ops/verify/test_doubled.py": {
        "a file with duplicated rows is found": "pass",
        "duplicated rows of a touched local file are found": '_digest(f"{file.uri}#{file.etag}")',
    },
    "tests/unit/cli/test_cli_init.py": {
        "libraries write nothing that all users may write": "pass",
    },
    "tests/unit/cli/test_cli_reads.py": {
        "a local file that was touched, renamed or appended to is not planned as a new one": "False",
    },
    "tests/unit/engines/test_columns_file.py": {
        "a damaged name is no column": "{each.name: each for each in known if each.name not in fields}",
    },
    "tests/unit/ops/verify/test_rot.py": {
        "a record whose bytes have changed counts as unreadable": "False",
        "a damaged columns file is found": "False",
    },
    "tests/unit/engines/test_parquet_files.py": {
        "a page whose bytes have changed is not read": "-page_checksum_verification",
    },
    "tests/unit/ops/verify/test_landed.py": {
        "a gap in a chain is found": "False",
        "a landed object has as many lines as were landed": "(lines := found[uri, etag]) == -1",
    },
    "tests/unit/ndjson/test_scratch.py": {
        "a deleted scratch folder is not used": "-last",
    },
    "tests/unit/schema/test_schema.py": {
        "a retired key gets no new column": "pass",
    },
    "tests/unit/settings/test_settings.py": {
        "nothing is written in place where readers list folders": "False",
    },
    "tests/unit/table/test_committer.py": {
        "an outdated head is not a lost table": "now.fence >= head.fence",
        "a rebuild waits for a person if another program may have moved the rows that it replaces": "False",
        "the fence is read again after a change without an answer": "False",
        "a batch omits done manifests": "False",
        "a re-created table gets no files that a rebuild replaced and deleted": "True",
        "the fence of a different state's table says nothing about these batches": "False",
        "a re-created table gets nothing before a person confirms": "False",
    },
    "tests/unit/table/test_merges.py": {
        "a merge is never applied once other files were replaced": "False",
        "a merged file takes the place of whole files of the table": "set(found)",
        "a merged file is not split while a part of it is missing": "False",
    },
    "tests/unit/table/test_refused_batches.py": {
        "skipped batches are recorded before anything else": "False",
        "a skipped batch lists nothing": "False",
        "the sender of a batch learns that it was skipped": "False",
        "a late process does not hold back a released manifest again": "pass",
        "a process that was overtaken holds back what it held back": "True",
    },
    "tests/unit/telemetry/test_logs.py": {
        "the text log is escaped": "-visible",
    },
}
