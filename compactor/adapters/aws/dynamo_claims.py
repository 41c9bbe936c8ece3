"""Claims in DynamoDB: one item a key, decided by conditional writes."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from compactor.adapters.aws.errors import error_code, pause_before_try, translated
from compactor.core.errors import StoreUnavailable
from compactor.core.ports import Claim

_THREADS = 16
_READ_BATCH = 100  # the most that BatchGetItem takes [DynamoDB API]
_TRIES = 5
_SECONDS_PER_DAY = 86_400

S = TypeVar("S")
T = TypeVar("T")


class DynamoClaims:
    """Claims as items of one table.

    An item counts until DynamoDB has removed it, which may be days after its time to live ended.

    Args:
        client: A boto3 client of DynamoDB, as `dynamodb_client` makes it.
        table: A table with the string partition key `pk`, and `expires_at` as its time-to-live attribute.
        ttl_days: How long a claim lives from when it was made; longer than an event may be late or repeated.
        sleep: How to wait before repeating what the client does not repeat by itself.
    """

    def __init__(
        self, client: Any, table: str, ttl_days: float, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._client = client
        self._table = table
        self._ttl_days = ttl_days
        self._sleep = sleep

    @property
    def lifetime_days(self) -> float | None:
        return self._ttl_days

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        distinct = list(dict.fromkeys(keys))
        claims = self._each(distinct, lambda key: self._claim_one(key, holder, now, lease_seconds))
        return dict(zip(distinct, claims, strict=True))

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        taken = Claim(to_holder, now + timedelta(seconds=lease_seconds))
        values = {":from": {"S": from_holder}}

        def take(key: str) -> bool:
            found = self._put(key, taken, now, "holder = :from", ExpressionAttributeValues=values)
            return found is taken or (found is not None and found.holder == to_holder)

        distinct = list(dict.fromkeys(keys))
        return {key for key, is_taken in zip(distinct, self._each(distinct, take), strict=True) if is_taken}

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        remaining = iter(dict.fromkeys(keys))
        batches = iter(lambda: tuple(islice(remaining, _READ_BATCH)), ())
        return {key: claim for found in self._each(list(batches), self._get_batch) for key, claim in found.items()}

    def _claim_one(self, key: str, holder: str, now: datetime, lease_seconds: float) -> Claim:
        wanted = Claim(holder, now + timedelta(seconds=lease_seconds))
        for _ in range(_TRIES):
            if found := self._put(key, wanted, now, "attribute_not_exists(pk)"):
                return found
        raise StoreUnavailable(f"{self._place(key)}: was claimed and removed by others {_TRIES} times")

    def _put(self, key: str, claim: Claim, now: datetime, condition: str, **more: Any) -> Claim | None:
        """Write a claim if the condition holds.

        Returns:
            `claim` itself if it was written; else the one that stood in its way. That may be the same again: the
            client repeats a request whose answer was lost, and the repeat meets what the first one wrote.
        """
        item = {
            "pk": {"S": key},
            "holder": {"S": claim.holder},
            "lease_until": {"S": claim.lease_until.isoformat()},
            "expires_at": {"N": str(int(now.timestamp() + self._ttl_days * _SECONDS_PER_DAY))},
        }
        with translated(self._place(key)):
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression=condition,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **more,
                )
            except ClientError as exc:
                if error_code(exc) != "ConditionalCheckFailedException":
                    raise
                # Absent where the server is too old to send it, or where there is no such item.
                found: Any = exc.response.get("Item")
                return _claim(found) if found else self.get_many([key]).get(key)
        return claim

    def _get_batch(self, keys: Sequence[str]) -> dict[str, Claim]:
        """Look up at most `_READ_BATCH` distinct keys."""
        found: dict[str, Claim] = {}
        wanted: dict[str, Any] = {self._table: {"Keys": [{"pk": {"S": key}} for key in keys], "ConsistentRead": True}}
        for tried in range(_TRIES):
            with translated(f"claims in table {self._table}"):
                answer = self._client.batch_get_item(RequestItems=wanted)
            found.update((item["pk"]["S"], _claim(item)) for item in answer["Responses"].get(self._table, ()))
            wanted = answer.get("UnprocessedKeys") or {}
            if not wanted:
                return found
            self._sleep(pause_before_try(tried + 1))
        raise StoreUnavailable(f"claims in table {self._table}: some were left unread in each of {_TRIES} tries")

    def _each(self, items: Sequence[S], do: Callable[[S], T]) -> list[T]:
        """Do something for every item, several at a time."""
        if len(items) <= 1:
            return [do(item) for item in items]
        with ThreadPoolExecutor(min(_THREADS, len(items)), "claims") as threads:
            return list(threads.map(do, items))

    def _place(self, key: str) -> str:
        return f"claim {key} in table {self._table}"


def _claim(item: dict[str, Any]) -> Claim:
    return Claim(item["holder"]["S"], datetime.fromisoformat(item["lease_until"]["S"]))
