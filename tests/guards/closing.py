"""Closed dates change no answer, whatever dies, comes late, or closes at the same time."""

from tests.guards.guard import Guard

_CLOSING = "tests/unit/ops/closing/test_closing.py"

CLOSING = (
    Guard(
        "a manifest that is done is marked, so that the next summary takes it in",
        "job/steps/publication.py",
        "        self.state.ledger.mark_unsummarised(outcome)\n",
        "",
        (_CLOSING + "::test_what_comes_late_makes_an_addition",),
    ),
    Guard(
        "of two processes that close a date at once, one gives up",
        "ops/closing/closer.py",
        "            if list(places) != list(draft.places):\n",
        "            if False:\n",
        (_CLOSING + "::test_what_happens_before_a_summary_is_written",),
    ),
    Guard(
        "a manifest is in no summary twice",
        "ledger/history/unsummarised.py",
        "            if summarised < generations[key]:\n",
        "            if True:\n",
        (_CLOSING + "::test_a_closing_that_dies_anywhere",),
    ),
    Guard(
        "what an earlier summary has of a rebuilt manifest is taken back",
        "ops/closing/draft.py",
        "self.sums = added(report.sums, superseded, sign=-1)",
        "self.sums = report.sums",
        (_CLOSING + "::test_what_comes_late_makes_an_addition",),
    ),
    Guard(
        "a date with a discrepancy stays open",
        "ops/closing/closer.py",
        "        if verified.discrepancies:\n",
        "        if False:\n",
        (_CLOSING + "::test_what_does_not_add_up_keeps_its_date_open",),
    ),
    Guard(
        "file versions are compared with those of all summaries",
        "ops/closing/version_index.py",
        "            if after < place <= self._upto:  # another process may have added more\n",
        "            if False:\n",
        (_CLOSING + "::test_doubles_across_dates_are_found",),
    ),
    Guard(
        "a summary names what was redriven until the redrive is accepted",
        "ops/closing/settling.py",
        '    if any(each.fate not in {"accepted", "revoked"} for each in own):\n',
        "    if False:\n",
        ("tests/unit/ops/closing/test_interrupted_redrives.py",),
    ),
    Guard(
        "dates are not closed while a run of another release is alive, which sets no marks",
        "ops/closing/closer.py",
        "        if others:\n",
        "        if False:\n",
        (_CLOSING + "::test_runs_of_another_release_come_first",),
    ),
)
