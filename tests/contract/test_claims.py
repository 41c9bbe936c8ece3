"""What every claim table promises, and what each of them does beyond that."""

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.stub import Stubber

from compactor.adapters.aws.clients import dynamodb_client
from compactor.adapters.aws.dynamo_claims import DynamoClaims
from compactor.adapters.claims import BLOCK_ENTRIES, JournalClaims
from compactor.adapters.local.sqlite.claims import SqliteClaims
from compactor.adapters.local.store import LocalStore
from compactor.core.errors import AccessError, RecordUnreadable, StoreUnavailable
from compactor.core.ports import Claim, ObjectStore
from tests.support.fakes import FaultyStore
from tests.support.memory_store import MemoryClaims, MemoryStore

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
LEASE = timedelta(seconds=90)
KEYS = [f"raw/day {number}/ünï%20#[1].ndjson|etag" for number in range(40)]
MANY = [f"raw/{number}" for number in range(230)]


def holders(found: dict[str, Claim]) -> dict[str, str]:
    return {key: claim.holder for key, claim in found.items()}


def holder_of(claims: Any, key: str) -> str | None:
    found = claims.get_many([key])
    return found[key].holder if found else None


def test_the_first_to_claim_holds_a_key(claims: Any) -> None:
    """A free key goes to the first caller; later callers get its holder and the end of the lease."""
    assert claims.get_many(["a"]) == {}
    first = claims.claim(["a", "b"], "m-1", now=NOW, lease_seconds=90)
    assert first == {key: Claim("m-1", NOW + LEASE) for key in ["a", "b"]}
    later = claims.claim(["b", "c"], "m-2", now=NOW + LEASE * 5, lease_seconds=90)
    assert later == {"b": first["b"], "c": Claim("m-2", NOW + LEASE * 6)}
    assert claims.get_many(["c", "free", "a"]) == {"a": first["a"], "c": later["c"]}


def test_claiming_again_changes_nothing(claims: Any) -> None:
    """A holder that claims its key again, after a crash for instance, finds it as it was; the lease does not move."""
    first = claims.claim(["a"], "m-1", now=NOW, lease_seconds=90)
    assert claims.claim(["a", "a"], "m-1", now=NOW + LEASE, lease_seconds=90) == first


def test_many_keys_at_once(claims: Any) -> None:
    """Many keys with any characters are each claimed and found by themselves; the answer is in the asked order."""
    claims.claim(KEYS[::2], "m-1", now=NOW, lease_seconds=90)
    found = claims.claim(KEYS, "m-2", now=NOW, lease_seconds=90)
    assert list(found) == KEYS
    assert holders(found) == {key: "m-2" if number % 2 else "m-1" for number, key in enumerate(KEYS)}
    assert claims.get_many([*KEYS, "free", *KEYS]) == found


def test_taking_over(claims: Any) -> None:
    """A key passes from the holder that was named to another, with a lease of its own; repeating that is no error."""
    claims.claim(["a"], "m-1", now=NOW, lease_seconds=90)
    for _ in range(2):
        assert claims.take_over(["a"], from_holder="m-1", to_holder="m-2", now=NOW + LEASE, lease_seconds=90)
        assert claims.get_many(["a"]) == {"a": Claim("m-2", NOW + LEASE * 2)}
    assert not claims.take_over(["a"], from_holder="m-1", to_holder="m-3", now=NOW, lease_seconds=90)
    assert claims.take_over(["a"], from_holder="m-2", to_holder="m-3", now=NOW, lease_seconds=90)


def test_taking_over_many_keys_at_once(claims: Any) -> None:
    """Of many keys, those pass on that the named holder has; the answer is all that the new one holds then."""
    claims.claim(KEYS[:20], "m-1", now=NOW, lease_seconds=90)
    claims.claim(KEYS[20:30], "m-0", now=NOW, lease_seconds=90)
    claims.claim(KEYS[30:31], "m-2", now=NOW, lease_seconds=90)
    won = claims.take_over(KEYS[10:], from_holder="m-1", to_holder="m-2", now=NOW, lease_seconds=90)
    assert won == {*KEYS[10:20], KEYS[30]}
    found = holders(claims.get_many(KEYS))
    expected = ["m-1"] * 10 + ["m-2"] * 10 + ["m-0"] * 10 + ["m-2"]
    assert found == dict(zip(KEYS[:31], expected, strict=True))
    assert claims.take_over([], from_holder="m-1", to_holder="m-2", now=NOW, lease_seconds=90) == set()


def test_taking_over_what_is_not_there_to_take(claims: Any) -> None:
    """A key with another holder, or that is free, is not taken over."""
    before = claims.claim(["other"], "m-1", now=NOW, lease_seconds=90)
    for key, holder in [("other", "m-0"), ("free", "m-1")]:
        assert not claims.take_over([key], from_holder=holder, to_holder="m-2", now=NOW, lease_seconds=90)
    assert claims.get_many(["other", "free"]) == before


def test_of_many_that_claim_at_once_one_wins_each_key(claims: Any) -> None:
    """Eight threads that claim the same keys agree on who got which, and every key has one holder."""
    barrier, contended = threading.Barrier(8), KEYS[:16]

    def compete(number: int) -> dict[str, str]:
        barrier.wait()
        own_order = contended[number * 2 :] + contended[: number * 2]
        return holders(claims.claim(own_order, f"m-{number}", now=NOW, lease_seconds=90))

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(compete, range(8)))
    assert all(answer == answers[0] for answer in answers)
    assert holders(claims.get_many(contended)) == answers[0]
    assert len(answers[0]) == 16


def test_of_many_that_take_over_at_once_one_wins(claims: Any) -> None:
    """Eight threads that take over the same key have one winner."""
    claims.claim(["a"], "m-0", now=NOW, lease_seconds=90)
    barrier = threading.Barrier(8)

    def compete(number: int) -> bool:
        barrier.wait()
        return bool(claims.take_over(["a"], from_holder="m-0", to_holder=f"n-{number}", now=NOW, lease_seconds=90))

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(compete, range(8)))
    assert won.count(True) == 1
    assert holder_of(claims, "a") == f"n-{won.index(True)}"


def _claim_in_process(path: Path, holder: str) -> dict[str, str]:
    claims = SqliteClaims(path)
    return {key: claims.claim([key], holder, now=NOW, lease_seconds=90)[key].holder for key in KEYS}


def test_sqlite_claims_hold_between_processes(tmp_path: Path) -> None:
    """Processes that share one file agree on who holds what."""
    path = tmp_path / "claims.db"
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
        answers = list(processes.map(_claim_in_process, [path] * 2, ["m-0", "m-1"]))
    assert answers[0] == answers[1]
    assert set(answers[0].values()) <= {"m-0", "m-1"}


def test_sqlite_claims_in_a_place_that_cannot_be(tmp_path: Path) -> None:
    """A file that is no database, or a folder that cannot be made, is an error that an operator has to fix."""
    (tmp_path / "file").write_bytes(b"no database, but long enough to be mistaken for one" * 100)
    for path in [tmp_path / "file", tmp_path / "file" / "claims.db", tmp_path]:
        with pytest.raises(AccessError, match="claims in"):
            SqliteClaims(path).claim(["a"], "m-1", now=NOW, lease_seconds=90)


def test_dynamodb_items_carry_their_time_to_live(dynamodb: Any, table: str) -> None:
    """An item tells DynamoDB when to remove it, in epoch seconds; taking it over begins that time anew."""
    claims = DynamoClaims(client=dynamodb, table=table, ttl_days=30)
    claims.claim(["a"], "m-1", now=NOW, lease_seconds=90)
    later = NOW + timedelta(days=1)
    for moment in (NOW, later):
        item = dynamodb.get_item(TableName=table, Key={"pk": {"S": "a"}})["Item"]
        assert item["expires_at"] == {"N": str(int((moment + timedelta(days=30)).timestamp()))}
        claims.take_over(["a"], from_holder="m-1", to_holder="m-2", now=later, lease_seconds=90)


def test_dynamodb_claims_that_expired_still_count(dynamodb: Any, table: str) -> None:
    """As long as DynamoDB has not removed an item, its holder holds the key."""
    claims = DynamoClaims(client=dynamodb, table=table, ttl_days=1)
    claims.claim(["a"], "m-1", now=NOW, lease_seconds=90)
    found = claims.claim(["a"], "m-2", now=NOW + timedelta(days=9), lease_seconds=90)
    assert holders(found) == {"a": "m-1"}


def test_dynamodb_claims_survive_a_lost_answer(aws_endpoint: str, table: str) -> None:
    """A write that took effect, but whose answer was lost, is recognised as one's own when it is repeated."""
    client = dynamodb_client("eu-west-1", aws_endpoint)
    session = client._endpoint.http_session
    send, lost = session.send, []

    def losing_send(request: Any) -> Any:
        answer = send(request)
        if len(lost) % 2 == 0:
            lost.append(request)
            raise ReadTimeoutError(endpoint_url=request.url)
        lost.append(None)
        return answer

    session.send = losing_send
    claims = DynamoClaims(client=client, table=table, ttl_days=1)
    assert holders(claims.claim(["a"], "m-1", now=NOW, lease_seconds=90)) == {"a": "m-1"}
    assert claims.take_over(["a"], from_holder="m-1", to_holder="m-2", now=NOW, lease_seconds=90)
    assert len(lost) == 4


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("ProvisionedThroughputExceededException", 400, StoreUnavailable),
        ("ThrottlingException", 400, StoreUnavailable),
        ("RequestLimitExceeded", 400, StoreUnavailable),
        ("InternalServerError", 500, StoreUnavailable),
        ("AccessDeniedException", 400, AccessError),
        ("UnrecognizedClientException", 400, AccessError),
        ("ExpiredTokenException", 400, AccessError),
    ],
)
def test_dynamodb_errors_say_what_to_do_next(aws_endpoint: str, code: str, status: int, expected: type) -> None:
    """Throttling is for trying again, a missing permission for an operator, whatever was asked."""
    client = dynamodb_client("eu-west-1", aws_endpoint, attempts=1)
    claims = DynamoClaims(client=client, table="claims", ttl_days=1)
    with Stubber(client) as stub:
        for operation in ("put_item", "put_item", "batch_get_item"):
            stub.add_client_error(operation, code, http_status_code=status)
        with pytest.raises(expected, match=code):
            claims.claim(["a"], "m-1", now=NOW, lease_seconds=90)
        with pytest.raises(expected, match=code):
            claims.take_over(["a"], from_holder="m-1", to_holder="m-2", now=NOW, lease_seconds=90)
        with pytest.raises(expected, match=code):
            claims.get_many(["a"])


def test_keys_that_dynamodb_left_unread_are_asked_for_again(aws_endpoint: str) -> None:
    """A look-up that DynamoDB cut short continues after a pause, and gives up in the end."""
    client = dynamodb_client("eu-west-1", aws_endpoint, attempts=1)
    pauses: list[float] = []
    claims = DynamoClaims(client=client, table="t", ttl_days=1, sleep=pauses.append)
    a, b = [{"pk": {"S": key}, "holder": {"S": "m-1"}, "lease_until": {"S": NOW.isoformat()}} for key in "ab"]
    rest = {"t": {"Keys": [{"pk": {"S": "b"}}], "ConsistentRead": True}}
    with Stubber(client) as stub:
        stub.add_response("batch_get_item", {"Responses": {"t": [a]}, "UnprocessedKeys": rest})
        stub.add_response("batch_get_item", {"Responses": {"t": [b]}, "UnprocessedKeys": {}}, {"RequestItems": rest})
        assert claims.get_many(["a", "b"]) == {"a": Claim("m-1", NOW), "b": Claim("m-1", NOW)}
        assert [0.1 <= pause <= 0.2 for pause in pauses] == [True]
        for _ in range(5):
            stub.add_response("batch_get_item", {"Responses": {}, "UnprocessedKeys": rest})
        with pytest.raises(StoreUnavailable, match="table t"):
            claims.get_many(["b"])


def test_journals_of_many_planners_agree(tmp_path: Path) -> None:
    """Eight planners with a journal of their own on one folder agree on who got which, entry by entry."""
    barrier = threading.Barrier(8)

    def compete(number: int) -> dict[str, str]:
        claims = JournalClaims(LocalStore(), f"{tmp_path}/claims/")
        barrier.wait()
        found = {}
        for key in KEYS[number * 5 :] + KEYS[: number * 5]:
            found |= holders(claims.claim([key], f"m-{number}", now=NOW, lease_seconds=90))
        return found

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(compete, range(8)))
    assert all(answer == answers[0] for answer in answers)
    assert sorted(answers[0]) == sorted(KEYS)


def test_journals_let_one_of_many_take_over(tmp_path: Path) -> None:
    """Of eight planners with a journal of their own, one takes a key over; those who come late see who has it."""
    JournalClaims(LocalStore(), f"{tmp_path}/claims/").claim(["a"], "m-0", now=NOW, lease_seconds=90)
    planners = [JournalClaims(LocalStore(), f"{tmp_path}/claims/") for _ in range(8)]
    for planner in planners:
        assert holder_of(planner, "a") == "m-0"
    barrier = threading.Barrier(8)

    def compete(number: int) -> bool:
        barrier.wait()
        taken = planners[number].take_over(["a"], from_holder="m-0", to_holder=f"n-{number}", now=NOW, lease_seconds=90)
        return bool(taken)

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(compete, range(8)))
    assert won.count(True) == 1
    assert {holder_of(planner, "a") for planner in planners} == {f"n-{won.index(True)}"}


def test_a_journal_takes_one_object_for_many_claims() -> None:
    """However many keys are claimed together; and none where nothing was free."""
    store = MemoryStore()
    claims = JournalClaims(store, "/claims/")
    claims.claim(MANY, "m-1", now=NOW, lease_seconds=90)
    claims.claim(MANY, "m-2", now=NOW, lease_seconds=90)
    assert [info.uri for info in store.list("/claims/")] == ["/claims/000000000001.json"]


def test_a_journal_with_a_gap_is_not_gone_by() -> None:
    """Who holds what cannot be told without every entry, so a planner stops rather than compact a file twice."""
    store = MemoryStore()
    for key in "abc":
        JournalClaims(store, "/claims/").claim([key], f"m-{key}", now=NOW, lease_seconds=90)
    store.delete(["/claims/000000000002.json"])
    with pytest.raises(RecordUnreadable, match=r"000000000002\.json: missing"):
        JournalClaims(store, "/claims/").get_many(["a"])
    store.put("/claims/000000000002.json", b"{}")
    with pytest.raises(RecordUnreadable, match="expected an entry of the claims journal"):
        JournalClaims(store, "/claims/").get_many(["a"])


def journal(store: ObjectStore) -> JournalClaims:
    return JournalClaims(store, "/claims/")


def test_a_long_journal_costs_few_calls_more() -> None:
    """A planner reads the index and the entries of the keys that it asks for: not all entries."""
    calls = {}
    for entries in (BLOCK_ENTRIES + 3, 16 * BLOCK_ENTRIES + 3):
        store = MemoryStore()
        claims = journal(store)
        for number in range(entries):
            claims.claim([f"{number}-a", f"{number}-b"], f"m-{number}", now=NOW, lease_seconds=90)
        watched = FaultyStore(store)
        found = journal(watched).get_many(["3-a", "3-b", f"{entries - 1}-a", "free"])
        assert holders(found) == {"3-a": "m-3", "3-b": "m-3", f"{entries - 1}-a": f"m-{entries - 1}"}
        calls[entries] = watched.calls["any"]
    few, many = calls.values()
    assert many <= few + 4


def test_a_journal_with_an_index_answers_as_one_without() -> None:
    """Claims and take-overs of four planners, each made anew now and then, over many blocks."""
    random, store, plain = Random(3), MemoryStore(), MemoryClaims()
    planners = [journal(store) for _ in range(4)]
    names = [f"f-{number}" for number in range(150)]
    for number in range(5 * BLOCK_ENTRIES):
        at = random.randrange(4)
        if random.random() < 0.1:
            planners[at] = journal(store)
        keys, holder = random.sample(names, 3), f"m-{number}"
        if random.random() < 0.3:
            held = plain.get_many(keys)
            other = held[keys[0]].holder if keys[0] in held else "m-0"
            answers = [
                each.take_over(keys, from_holder=other, to_holder=holder, now=NOW, lease_seconds=90)
                for each in (planners[at], plain)
            ]
        else:
            answers = [each.claim(keys, holder, now=NOW, lease_seconds=90) for each in (planners[at], plain)]
        assert answers[0] == answers[1]
    for each in (*planners, journal(store)):
        assert each.get_many(names) == plain.get_many(names)
    assert len(list(store.list("/claims-index/"))) > 1


def test_a_key_that_could_not_be_looked_up_is_not_free() -> None:
    """A store that fails while the index or an entry is read fails the call, and the next one looks again."""
    store = MemoryStore()
    for number in range(BLOCK_ENTRIES):
        journal(store).claim([f"f-{number}"], f"m-{number}", now=NOW, lease_seconds=90)
    for method in ("read_range", "read"):
        for call in (1, 2):
            watched = FaultyStore(store)
            claims = journal(watched)
            watched.unavailable_at(call, method)
            with pytest.raises(StoreUnavailable):
                claims.get_many(["f-3"])
            assert holders(claims.claim(["f-3"], "other", now=NOW, lease_seconds=90)) == {"f-3": "m-3"}


def test_an_index_that_cannot_be_written_stops_no_claim() -> None:
    """The claim counts, and a later one writes the index."""
    store = MemoryStore()
    watched = FaultyStore(store)
    watched.unavailable_at(1, "writer")
    claims = journal(watched)
    for number in range(BLOCK_ENTRIES):
        claims.claim([f"f-{number}"], f"m-{number}", now=NOW, lease_seconds=90)
    assert not list(store.list("/claims-index/"))
    claims.claim(["f-0", "new"], "m-new", now=NOW, lease_seconds=90)
    assert list(store.list("/claims-index/"))
    assert holder_of(claims, "f-0") == holder_of(journal(store), "f-0") == "m-0"


def test_the_index_of_another_journal_of_the_same_length_is_forgotten() -> None:
    """As after a person began the journal anew and left the index: every entry of the index is there."""
    store, begun_anew = MemoryStore(), MemoryStore()
    for number in range(BLOCK_ENTRIES + 1):
        journal(store).claim([f"f-{number}"], f"m-{number}", now=NOW, lease_seconds=90)
        journal(begun_anew).claim([f"g-{number}"], f"n-{number}", now=NOW, lease_seconds=90)
    for info in begun_anew.list("/claims/"):
        store.put(info.uri, begun_anew.read(info.uri))
    assert holder_of(journal(store), "g-3") == "n-3"
    assert holder_of(journal(store), "f-3") is None


def test_an_entry_that_the_index_has_is_not_gone_by() -> None:
    """Who holds the key cannot be told without it."""
    store = MemoryStore()
    for number in range(BLOCK_ENTRIES):
        journal(store).claim([f"f-{number}"], f"m-{number}", now=NOW, lease_seconds=90)
    store.delete(["/claims/000000000004.json"])
    with pytest.raises(RecordUnreadable, match=r"000000000004\.json: missing, although it is in the journal's index"):
        journal(store).get_many(["f-3"])


def test_a_missing_table_is_for_an_operator(dynamodb: Any) -> None:
    """Claims in a table that does not exist name the table and stop."""
    with pytest.raises(AccessError, match="no-such-table"):
        DynamoClaims(client=dynamodb, table="no-such-table", ttl_days=1).claim(KEYS, "m-1", now=NOW, lease_seconds=90)
