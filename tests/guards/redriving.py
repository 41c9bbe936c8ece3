"""Redrives lose no line and double none, and verification names surplus files."""

from tests.guards.guard import Guard

_AGAIN = "tests/unit/ops/redrive/test_redriving_again.py"
_OVERWRITTEN = "tests/unit/job/test_landed_streams.py::test_what_a_planned_manifest_was_overwritten_with"
_TAKEN = "tests/unit/ops/redrive/test_taken_over.py"
_REFUSED = "tests/unit/ops/redrive/test_redriving_refused.py"

REDRIVING = (
    Guard(
        "a duplicate of a manifest of a producer is not settled with it",
        "ops/redrive/settling/duplicates.py",
        "    if not _is_planned(state, holder.manifest):\n        return None\n",
        "",
        (_TAKEN,),
    ),
    Guard(
        "a duplicate that names a file of its own stays open",
        "ops/redrive/settling/duplicates.py",
        "    return all(is_kafka(file.uri) for file in others) and not files_not_in(others, planned)\n",
        "    return True\n",
        (_OVERWRITTEN,),
    ),
    Guard(
        "a duplicate is settled once the planned manifest is committed, not before",
        "ops/redrive/settling/duplicates.py",
        "    is_committed = isinstance(state.ledger.outcome(holder.key), Commit)\n",
        "    is_committed = True\n",
        (_OVERWRITTEN,),
    ),
    Guard(
        "a file that is quarantined again after its redrive can be redriven again",
        "ledger/history/redrive_log.py",
        "if each.in_effect and each.redrive.source == manifest_id]",
        "if each.in_effect]",
        (_AGAIN + "::test_a_file_that_is_missing_again",),
    ),
    Guard(
        "without claims the date in a file's name is searched as well",
        "ops/redrive/draft.py",
        "return {self.date, self.outcome.date}.union(*own)",
        "return {self.date, self.outcome.date}",
        (_REFUSED + "::test_a_file_of_another_date_without_claims",),
    ),
    Guard(
        "a redrive takes no file of a date with a record that cannot be read, which may name the file",
        "ops/redrive/planner.py",
        '            if why := unknown or next(filter(None, map(unread.get, sorted(draft.dates()))), ""):\n',
        "            if why := unknown:\n",
        (_REFUSED + "::test_a_record_that_cannot_be_read",),
    ),
    Guard(
        "a file that is claimed during a redrive is refused by name",
        "ops/redrive/planner.py",
        "        draft.refuse_held(lost)\n",
        "",
        (_REFUSED + "::test_a_file_that_is_claimed_meanwhile",),
    ),
    Guard(
        "a redrive that was held up leaves the claims of a later one",
        "ops/redrive/draft.py",
        "        return self.is_own(holder) and next(numbers) < next(numbers)\n",
        "        return self.is_own(holder)\n",
        ("tests/unit/ops/redrive/test_redriving_held_up.py",),
    ),
    Guard(
        "a redrive writes the missing manifest of an earlier one",
        "ops/redrive/redriver.py",
        'if entry.fate != "unwritten" or manifest_id in run.report.healed:',
        "if True:",
        ("tests/unit/ops/redrive/test_redriving.py::test_healing_writes_the_same_bytes",),
    ),
    Guard(
        "a dead letter is settled once each of its files was taken over, not one",
        "ops/redrive/settling/dead_letters.py",
        "if all(version in taken for version in those)}",
        "if those[-1] in taken}",
        (_TAKEN + "::test_what_was_taken_over_in_part",),
    ),
    Guard(
        "what took over a dead letter's other files may be in summaries",
        "ops/redrive/settling/dead_letters.py",
        "if any(version in found for version in those)}",
        "if all(version in found for version in those)}",
        (_TAKEN + "::test_dates_that_are_closed_meanwhile",),
    ),
    Guard(
        "the version that a dead letter names settles it, whatever the order of the attempts",
        "ops/redrive/settling/later_rows.py",
        "        return is_same and self.moment > version.started_at - CLOCKS_APART\n",
        "        return False\n",
        (_TAKEN + "::test_a_file_that_had_changed_when_it_was_taken_over",),
    ),
    Guard(
        "a surplus file is not ascribed to a manifest without an outcome",
        "ops/verify/surplus.py",
        'owner.id if owner and outcome else ""',
        'owner.id if owner else ""',
        ("tests/unit/ops/verify/test_verify.py::test_surplus_files",),
    ),
)
