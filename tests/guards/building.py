"""Each announced object is in one manifest."""

from tests.guards.guard import Guard

_PLANNING = "tests/unit/manifests/test_planning.py"
_CLAIM = "tests/contract/test_claims.py::test_the_first_to_claim_holds_a_key"
_TAKE_OVER = "tests/contract/test_claims.py::test_taking_over"
_BUILDING = "tests/unit/manifests/test_building.py"
_FAILURES = "tests/unit/manifests/test_building_failures.py"
_SEALING = "tests/unit/manifests/test_sealing.py"
_BUILDING_RACES = "tests/unit/manifests/test_building_races.py"
_MANY_DATES = "tests/unit/manifests/test_many_dates.py"
_OTHER_WINDOW = _MANY_DATES + "::test_another_window_plans_no_file_again"
_DRIVERS = "tests/faults/test_two_drivers.py"

CLAIMS = (
    Guard(
        "claims of a stream are settled by settings that have it",
        "manifests/claiming.py",
        "        if self.neighbour is None:\n",
        "        if self.neighbour is None:\n            return self, holder\n        if self.neighbour is None:\n",
        ("tests/unit/manifests/test_claiming.py",),
    ),
    Guard(
        "a part with a damaged record holds up no other",
        "manifests/building/sealer.py",
        "            is_bound = _or_fault(partial(self._is_bound, part))\n",
        "            is_bound = self._is_bound(part)\n",
        (_SEALING + "::test_a_young_part_with_a_damaged_record_is_left_out",),
    ),
    Guard(
        "a part with a damaged record makes no other one due",
        "manifests/building/sealer.py",
        "            if isinstance(found, Exception):\n",
        "            if False:\n",
        (_SEALING + "::test_a_damaged_record_makes_no_other_part_due",),
    ),
    Guard(
        "a claim in memory is not overwritten",
        "adapters/memory/store.py",
        "self._claims.setdefault(key, fresh)",
        "self._claims.__setitem__(key, fresh) or fresh",
        (_CLAIM, _PLANNING),
    ),
    Guard(
        "a claim in SQLite is not overwritten",
        "adapters/local/sqlite/claims.py",
        "INSERT INTO claims (key, holder, lease_until, expires_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        "INSERT OR REPLACE INTO claims (key, holder, lease_until, expires_at) VALUES (?, ?, ?, ?)",
        (_CLAIM,),
    ),
    Guard(
        "a claim in DynamoDB is not overwritten",
        "adapters/aws/dynamo_claims.py",
        '"attribute_not_exists(pk)"',
        '"attribute_not_exists(pk) OR attribute_exists(pk)"',
        (_CLAIM,),
    ),
    Guard(
        "a claim in SQLite is taken over from the holder that was named alone",
        "adapters/local/sqlite/claims.py",
        'WHERE key = ? AND holder = ?"',
        'WHERE key = ? AND holder <> ?"',
        (_TAKE_OVER,),
    ),
    Guard(
        "claims are not told from a journal with a gap",
        "adapters/journal_claims.py",
        "if number != self._entries + 1:",
        "if False:",
        ("tests/contract/test_claims.py",),
    ),
    Guard(
        "a planner that finds an entry of the journal by another one starts again behind it",
        "adapters/journal_claims.py",
        "if self.store.create(self._uri(number), entry.model_dump_json().encode()):",
        "if self.store.create(self._uri(number), entry.model_dump_json().encode()) or True:",
        ("tests/contract/test_claims.py",),
    ),
    Guard(
        "a claim in DynamoDB is taken over from the holder that was named alone",
        "adapters/aws/dynamo_claims.py",
        '"holder = :from"',
        '"holder = :from OR attribute_exists(pk)"',
        (_TAKE_OVER,),
    ),
    Guard(
        "files that another planner claimed are left to it while its lease lasts",
        "manifests/claiming.py",
        'if fate == "unwritten" and claim.lease_until > now:',
        "if False:",
        (_PLANNING,),
    ),
    Guard(
        "a late manifest whose files were taken over never takes effect",
        "manifests/claiming.py",
        "            self._revoke(other, now)\n            fates[other] = self._fate(other)\n",
        '            fates[other] = "revoked"\n',
        (_PLANNING,),
    ),
    Guard(
        "a planner that is held up beyond its lease doubles nothing, with real processes",
        "manifests/claiming.py",
        "            self._revoke(other, now)\n            fates[other] = self._fate(other)\n",
        '            fates[other] = "revoked"\n',
        (_DRIVERS,),
    ),
)

BUILDING = (
    Guard(
        "a revoked part is never sealed",
        "manifests/building/sealer.py",
        "        return is_bound\n",
        "        return True\n",
        (_SEALING, _BUILDING_RACES),
    ),
    Guard(
        "a part is sealed into one manifest",
        "manifests/building/sealer.py",
        "if part_key(part.manifest_id) in claimed.won]\n        if won:",
        "if True]\n        if won:",
        (_BUILDING_RACES,),
    ),
    Guard(
        "the sealer reads no more files than its memory holds before it seals them",
        "manifests/building/sealer.py",
        "            if files >= self.files_at_once or",
        "            if",
        (_SEALING + "::test_parts_are_sealed_before_all_are_read",),
    ),
    Guard(
        "the sealer reads no more parts than its time allows before it seals them",
        "manifests/building/sealer.py",
        " or len(gathered) >= self.parts_at_once:\n",
        ":\n",
        (_SEALING + "::test_parts_are_sealed_before_all_are_read",),
    ),
    Guard(
        "what a builder could not claim is left to its holder",
        "manifests/building/builder.py",
        "if claim_key(file) in claimed.won]",
        "if True]",
        (_BUILDING, _BUILDING_RACES),
    ),
    Guard(
        "a message whose file another builder may still write comes again",
        "manifests/building/builder.py",
        'UTC" for key, until in claimed.held.items()}\n',
        'UTC" for key, until in ()}\n',
        (_FAILURES, _BUILDING_RACES),
    ),
    Guard(
        "no manifest names two versions of one object",
        "manifests/partitioning.py",
        "layered(files, lambda file: (canonical(file.uri),))",
        "[list(files)]",
        (_BUILDING,),
    ),
    Guard(
        "a builder whose id was revoked acknowledges nothing",
        "manifests/building/builder.py",
        '        if not self.claimer.bind(manifest, "manifest" if is_full else "part"):\n',
        "        if False:\n",
        (_FAILURES, _BUILDING_RACES),
    ),
    Guard(
        "a sealer whose id was revoked removes nothing",
        "manifests/building/sealer.py",
        '            if not self.claimer.bind(manifest, "manifest"):\n',
        "            if False:\n",
        (_SEALING, _BUILDING_RACES),
    ),
    Guard(
        "an announced version that no request can carry does not spoil a manifest",
        "manifests/s3_events.py",
        " or not is_etag(version)",
        "",
        ("tests/unit/manifests/test_s3_events.py",),
    ),
    Guard(
        "a builder begins no group after its time",
        "manifests/building/builder.py",
        "        if self.state.clock.now() > begins_until:\n",
        "        if False:\n",
        (_MANY_DATES,),
    ),
    Guard(
        "many tiny dates do not delay volume",
        "manifests/building/builder.py",
        "map_ordered(build, largest_first(groups), ",
        "map_ordered(build, groups, ",
        (_MANY_DATES,),
    ),
    Guard(
        "a trace finds a file under the day of its arrival, which it had before the settings were changed",
        "core/inputs/dates.py",
        "    return {_day(arrived_at)} if named is None else {_day(arrived_at), named.date}\n",
        "    return {named.date if named else _day(arrived_at)}\n",
        (_OTHER_WINDOW,),
    ),
    Guard(
        "a redrive without claims looks under the day of a file's arrival",
        "core/inputs/dates.py",
        "    return {_day(arrived_at)} if named is None else {_day(arrived_at), named.date}\n",
        "    return {named.date if named else _day(arrived_at)}\n",
        ("tests/unit/ops/redrive/test_redriving_refused.py::test_a_file_of_another_date_without_claims",),
    ),
    Guard(
        "a plan looks under the day of a file's arrival, which it had before the settings were changed",
        "manifests/spilled/named_before.py",
        "    return found | {each.isoformat() for each in arrivals}\n",
        "    return found\n",
        (_OTHER_WINDOW,),
    ),
    Guard(
        "a plan looks under the date in a file's name, which it had before the settings were changed",
        "manifests/spilled/named_before.py",
        "        if file.dated_by == ARRIVAL:",
        "        if False:",
        (_OTHER_WINDOW,),
    ),
    Guard(
        "no manifest is longer than intake accepts",
        "manifests/partitioning.py",
        ", target_bytes * json_bytes * 2 / rules.max_bytes)",
        ")",
        (_MANY_DATES,),
    ),
    Guard(
        "what is written is not taken for safe before it is bound",
        "manifests/claiming.py",
        '            return self._bound(read(expected=f"a {kind} of the id {holder}"), data, kind)\n',
        '            return "exists"\n',
        (_FAILURES,),
    ),
)
