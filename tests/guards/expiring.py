"""Nothing is gone without a record of the rule, and no record hides what it does not name."""

from tests.guards.guard import Guard

_RETIRING = "tests/unit/ops/retire/test_retiring.py"
_EXPIRING = "tests/unit/job/test_expiring.py"

EXPIRING = (
    Guard(
        "an intention is on record before anything expires, so that the next run finishes it",
        "upkeep/expiring.py",
        "        self._log.begin(record)\n",
        "",
        (_RETIRING + "::test_a_retirement_that_dies_anywhere",),
    ),
    Guard(
        "what expires is on record before it is deleted",
        "upkeep/expiring.py",
        "        record = self._log.record(begun)\n",
        "        record = begun\n",
        (_RETIRING + "::test_a_retirement_that_dies_anywhere",),
    ),
    Guard(
        "the files of a manifest that is open are left to the next run",
        "core/documents/expired.py",
        "    return [each for each in same if each not in in_work], [each for each in same if each in in_work]\n",
        "    return same, []\n",
        (_RETIRING + "::test_a_rebuild_that_begins_after_the_record",),
    ),
    Guard(
        "a record takes nothing of a later generation",
        "core/documents/expired.py",
        "        is_member = key.date == self.date and generation <= self.manifests.get(key.id, 0)\n",
        "        is_member = key.date == self.date and key.id in self.manifests\n",
        ("tests/unit/core/test_expired.py::test_only_what_a_record_names_expired",),
    ),
    Guard(
        "a rebuild gives up if its rows expired meanwhile",
        "ops/rebuild/rebuilder.py",
        "            self._check_kept(commit, made)\n",
        "",
        (_RETIRING + "::test_a_rebuild_at_the_same_time",),
    ),
    Guard(
        "a rebuild never uses a name of expired rejects again",
        "ops/rebuild/successor.py",
        "    kept = [file for file in previous.rejects if file.final not in expired]\n",
        "    kept = previous.rejects\n",
        (_EXPIRING + "::test_rebuilt_rejects_are_not_those_that_expired",),
    ),
    Guard(
        "a file that is gone without a record is missing",
        "ops/verify/commit_files.py",
        "            if expired is not None:\n",
        "            if True:\n",
        (_RETIRING + "::test_what_is_gone_without_a_record_is_missing",),
    ),
    Guard(
        "a date with a record that cannot be read is refused for that, by name",
        "core/rules/retiring.py",
        "        return facts.unreadable or in_work\n",
        "        return in_work\n",
        (_RETIRING + "::test_what_cannot_be_read_keeps_its_own_date",),
    ),
    Guard(
        "a date with unfinished work is not retired",
        "ops/retire/scan.py",
        "            elif why := why_not_retired(facts, with_unsettled=with_unsettled):\n",
        "            elif (why := why_not_retired(facts, with_unsettled=True)) and not facts.is_closed:\n",
        (_RETIRING + "::test_a_manifest_in_work_keeps_its_date",),
    ),
    Guard(
        "nothing else of a kind expires while the store refuses to delete what did",
        "upkeep/cleaner.py",
        "                    self.expirer.finish([expiry.expiry])\n",
        "                    pass\n",
        (_EXPIRING + "::test_a_cleaning_that_dies_anywhere",),
    ),
    Guard(
        "which manifests are open is read before their outcomes, which a rebuild may change",
        "upkeep/expiring.py",
        "            opened = set(self.state.ledger.open_ids())\n            outcomes = self._outcomes(record)\n",
        "            outcomes = self._outcomes(record)\n            opened = set(self.state.ledger.open_ids())\n",
        (_RETIRING + "::test_a_rebuild_that_ends_while_files_go",),
    ),
    Guard(
        "redriven lines that were quarantined stay",
        "upkeep/expiring.py",
        "    return not any(is_left(file, place, outcome.manifest_id) for file in outcome.files)\n",
        "    return True\n",
        (_RETIRING + "::test_redriven_lines_that_were_quarantined_stay",),
    ),
)
