"""What is tried, how often, and what may be read."""

from tests.guards.guard import Guard

_COMPACTION = "tests/unit/job/test_compaction.py"
_BATCHES = "tests/unit/job/test_batches.py"
_MANIFEST = "tests/unit/core/test_manifest.py"
_PLANNING = "tests/unit/manifests/test_planning.py"
_ATTEMPTS = "tests/unit/core/test_attempts.py"

ATTEMPTS = (
    Guard(
        "an attempt is on record before its work starts",
        "ledger/ledger.py",
        "            if self._store.create(self._layout.attempt(key, number), _json(attempt)):\n",
        "            if True:\n",
        (_COMPACTION + "::test_life_in_order",),
    ),
    Guard(
        "a manifest that kills its driver each time runs out of attempts",
        "job/compaction.py",
        "        if held >= self.max_attempts:\n",
        "        if False:\n",
        (_COMPACTION + "::test_killer_runs_out_of_attempts",),
    ),
    Guard(
        "only a death alone counts",
        "core/attempts.py",
        "    if not state.attempt.alone:\n        return False\n",
        "",
        (_ATTEMPTS,),
    ),
    Guard(
        "passing trouble does not count",
        "core/attempts.py",
        "        return not state.failure.passing\n",
        "        return True\n",
        (_ATTEMPTS,),
    ),
    Guard(
        "an attempt of a run that lives is no death",
        "core/attempts.py",
        "    return state.attempt.run_id not in living_runs\n",
        "    return True\n",
        (_ATTEMPTS,),
    ),
    Guard(
        "suspects are tried alone",
        "job/batches.py",
        "            elif is_suspect(state.attempts):\n",
        "            elif False:\n",
        (_BATCHES,),
    ),
    Guard(
        "open manifests are found again after a death",
        "ledger/ledger.py",
        "        self._store.create(self._layout.open_marker(key.id), _json(marker))\n",
        "        del marker\n",
        (_COMPACTION + "::test_killer_runs_out_of_attempts",),
    ),
)

PLACES = (
    Guard(
        "a manifest cannot name files outside the allowed prefixes",
        "core/manifest_parsing.py",
        "        if not is_allowed(path, manifest.manifest_id, allowed_prefixes, redriven_folder):\n",
        "        if False:\n",
        (_MANIFEST,),
    ),
    Guard(
        "a manifest of millions of files is refused before it is parsed",
        "core/manifest_parsing.py",
        "    if values > most:\n",
        "    if False:\n",
        (_MANIFEST,),
    ),
    Guard(
        "a manifest names no more files than it may",
        "core/manifest_parsing.py",
        "    if len(files) > rules.max_files:\n",
        "    if False:\n",
        (_MANIFEST,),
    ),
    Guard(
        "an ETag that no request can carry is refused with its manifest",
        "core/manifest_parsing.py",
        "    return _ETAG.fullmatch(text) is not None\n",
        "    return True\n",
        (_MANIFEST,),
    ),
    Guard(
        "a date that cannot be right is not taken from a name",
        "core/dates.py",
        "        if named is not None and self._holds(named, arrived_at):\n",
        "        if named is not None:\n",
        ("tests/unit/core/test_dates.py",),
    ),
    Guard(
        "nothing outside the allowed prefixes is planned",
        "manifests/planning.py",
        "        if not any(is_within(folder(prefix), each) for each in self.allowed_prefixes):\n",
        "        if False:\n",
        (_PLANNING,),
    ),
)
