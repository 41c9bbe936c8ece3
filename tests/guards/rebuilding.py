"""Rebuilds lose no row and double none, whatever is late, and make the rows that there were."""

from tests.guards.guard import Guard

_REBUILD = "tests/unit/ops/rebuild/test_rebuild.py"
_HELD_UP = "tests/unit/ops/rebuild/test_rebuild_held_up.py"
_MARKERS = "tests/unit/ops/rebuild/test_open_markers.py"
_REPLACING = "tests/unit/ops/rebuild/test_replacing.py"
_REFUSED = "tests/unit/ops/rebuild/test_rebuild_refused.py"
_READERS = "tests/unit/ops/rebuild/test_rebuilt_readers.py"

REBUILDING = (
    Guard(
        "what could double rows is deleted before the files of a rebuild are published",
        "job/steps/publication.py",
        "            self.state.store.delete(left)\n",
        "            pass\n",
        (_REBUILD + "::test_rows_come_back",),
    ),
    Guard(
        "what is left of earlier staging is deleted before a rebuild chooses its names",
        "ops/rebuild/rebuilder.py",
        "        self.publisher.delete_staging(commit.manifest_id, upto=commit.generation)\n",
        "",
        (_HELD_UP + "::test_a_late_driver_doubles_no_row_of_a_rebuild",),
    ),
    Guard(
        "what is left of earlier staging is deleted before a rebuild is published",
        "job/steps/publication.py",
        "        self.delete_staging(commit.manifest_id, upto=commit.generation - 1)\n",
        "",
        (_HELD_UP + "::test_nothing_of_an_earlier_commit_can_be_copied_any_more",),
    ),
    Guard(
        "the cleaner leaves what a rebuild has staged and not decided",
        "upkeep/retention.py",
        "        if any(self.state.layout.staged_generation(info.uri) > newest for info in staged):\n",
        "        if False and any(staged):\n",
        (_HELD_UP + "::test_a_rebuild_that_is_held_up_for_a_day_keeps_what_it_staged",),
    ),
    Guard(
        "clean-up leaves the staging of a rebuild",
        "job/steps/publication.py",
        "if layout.staged_generation(uri) <= upto])",
        "if upto])",
        (_REBUILD + "::test_job_that_cleans_up_late",),
    ),
    Guard(
        "clean-up leaves a rebuild in the index of open manifests",
        "ledger/ledger.py",
        "if of <= generation]",
        "if of <= generation + 1]",
        (_READERS + "::test_a_rebuild_stays_open",),
    ),
    Guard(
        "each attempt at a rebuild has a marker of its own",
        "core/layout.py",
        '        number = f"-{attempt}" if attempt else ""\n',
        '        number = ""\n',
        (_MARKERS + "::test_the_job_finishes_a_rebuild_beside_which_another_cleared_up",),
    ),
    Guard(
        "the marker of a rebuild that may still decide is not forgotten",
        "ops/rebuild/rebuilder.py",
        "if generation > commit.generation and at <= is_over]",
        "if generation > commit.generation]",
        (_MARKERS + "::test_the_job_finishes_a_rebuild_beside_which_another_cleared_up",),
    ),
    Guard(
        "what was decided since a scan keeps its marker",
        "ops/rebuild/rebuilder.py",
        "        if undecided and ledger.outcome(commit.key).generation == commit.generation:\n",
        "        if undecided:\n",
        (_MARKERS + "::test_what_was_decided_since_the_scan_stays_open",),
    ),
    Guard(
        "a replaced file has rows of its new version before it counts as rebuilt",
        "ops/rebuild/rebuilder.py",
        "        if not damaged.replaced <= _replaced_by(commit):\n",
        "        if False:\n",
        (_REPLACING + "::test_another_rebuild_decides_first",),
    ),
    Guard(
        "a driver that finds the staging of an older commit gone looks for a rebuild",
        "job/steps/publication.py",
        "        if self._superseding(commit) is not None:\n",
        "        if False:\n",
        (_REBUILD + "::test_staging_lost_beside_a_job",),
    ),
    Guard(
        "a file of an earlier generation is not taken for a published one",
        "job/steps/publication.py",
        " or commit.rebuild is not None:\n",
        ":\n",
        (_REBUILD + "::test_lost_staging_of_a_rebuild",),
    ),
    Guard(
        "the name of a file that holds other rows is given up",
        "ops/rebuild/successor.py",
        "        given_up.update(others)\n",
        "        pass\n",
        (_REBUILD + "::test_rows_come_back",),
    ),
    Guard(
        "beside files that hold other rows, the name of an unreadable one is given up",
        "ops/rebuild/successor.py",
        "    given_up = {uri for uri in finals if others and found[uri] is Found.UNREADABLE}\n",
        "    given_up = set[str]()\n",
        (_REBUILD + "::test_a_query_across_a_rebuild",),
    ),
    Guard(
        "a single file that holds other rows is replaced first",
        "ops/rebuild/successor.py",
        "        names = sorted(names, key=lambda name: name != others[0])\n",
        "",
        (_REBUILD + "::test_rows_come_back",),
    ),
    Guard(
        "names that were given up are never used again",
        "ops/rebuild/successor.py",
        "count(max(map(part_number, (*finals, *removed)), default=0) + 1)",
        "count(max(map(part_number, finals), default=0) + 1)",
        (_REBUILD + "::test_numbers_are_given_up_for_good",),
    ),
    Guard(
        "quarantined files are not compacted by a rebuild",
        "ops/rebuild/damage.py",
        "[file for file in commit.files if file.status is FileStatus.COMPACTED]",
        "list(commit.files)",
        (_REFUSED + "::test_redriven_files_stay_out",),
    ),
    Guard(
        "other rows than there were are refused",
        "ops/rebuild/rebuilder.py",
        "                _check_same(old, self._with_digest_like(old, new, damaged), damaged)\n",
        "                pass\n",
        (_REFUSED + "::test_lines_read_otherwise",),
    ),
    Guard(
        "another version of the input is refused",
        "ops/rebuild/damage.py",
        "        if info.etag == file.etag or file.may_have_grown(info.size_bytes):\n",
        "        if True:\n",
        (_REFUSED + "::test_input_changed",),
    ),
    Guard(
        "the staging of a rebuild that may be decided stays",
        "ops/rebuild/rebuilder.py",
        "        winner = ledger.decide(made)\n",
        "        try:\n"
        "            winner = ledger.decide(made)\n"
        "        except Exception:\n"
        "            stager.discard(accepted, attempt)\n"
        "            raise\n",
        (_REFUSED + "::test_decision_without_an_answer",),
    ),
    Guard(
        "rebuilt rows keep the time at which they were processed",
        "ops/rebuild/rebuilder.py",
        'attempt.model_copy(update={"started_at": commit.started_at})',
        "attempt",
        (_REBUILD + "::test_rows_come_back",),
    ),
    Guard(
        "a rebuild is not counted as a commit",
        "job/steps/compaction.py",
        "        if outcome.generation > 1 or decision.wasted:",
        "        if decision.wasted:",
        (_REBUILD + "::test_death_at_each_change",),
    ),
)
