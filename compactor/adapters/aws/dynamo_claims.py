"""Claims in DynamoDB: one item per key, decided by conditional writes."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from compactor.adapters.aws.errors import error_code, pause_before_try, translated
from compactor.core.errors import StoreUnavailable
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import Claim

_READ_BATCH = 100  # the limit of BatchGetItem [DynamoDB API]
_TRIES = 5
_SECONDS_PER_DAY = 86_400

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoClaims:
    """Claims as items of one table.

    An item counts until DynamoDB removes it, which may be days after its time to live.

    Attributes:
        table: A table with the string partition key `pk`, and `expires_at` as its time-to-live attribute.
        ttl_days: A claim's time to live, longer than an event may be late or repeated.
        sleep: Waits before retries that the client does not make itself.
    """

    client: Any
    table: str
    ttl_days: float
    sleep: Callable[[float], None] = time.sleep

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        return self._each(keys, lambda key: self._claim_one(key, holder, now, lease_seconds))

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        taken = Claim(to_holder, now + timedelta(seconds=lease_seconds))
        values = {":from": {"S": from_holder}}

        def take(key: str) -> bool:
            found = self._put(key, taken, now, "holder = :from", ExpressionAttributeValues=values)
            return found is taken or (found is not None and found.holder == to_holder)

        return {key for key, is_taken in self._each(keys, take).items() if is_taken}

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        remaining = iter(dict.fromkeys(keys))
        batches = iter(lambda: tuple(islice(remaining, _READ_BATCH)), ())
        found = self._each(batches, self._get_batch)
        return {key: claim for of_batch in found.values() for key, claim in of_batch.items()}

    def _claim_one(self, key: str, holder: str, now: datetime, lease_seconds: float) -> Claim:
        wanted = Claim(holder, now + timedelta(seconds=lease_seconds))
        for _ in range(_TRIES):
            if found := self._put(key, wanted, now, "attribute_not_exists(pk)"):
                return found
        raise StoreUnavailable(f"{self._place(key)}: claimed and removed by others in each of {_TRIES} tries")

    def _put(self, key: str, claim: Claim, now: datetime, condition: str, **more: Any) -> Claim | None:
        """Write a claim if the condition holds.

        Returns:
            `claim` itself if it was written; else the existing claim. That may equal `claim`: if a response was lost,
                the client's
            retry finds what the first request wrote.
        """
        item = {
            "pk": {"S": key},
            "holder": {"S": claim.holder},
            "lease_until": {"S": claim.lease_until.isoformat()},
            "expires_at": {"N": str(int(now.timestamp() + self.ttl_days * _SECONDS_PER_DAY))},
        }
        with translated(self._place(key)):
            try:
                self.client.put_item(
                    TableName=self.table,
                    Item=item,
                    ConditionExpression=condition,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **more,
                )
            except ClientError as exc:
                if error_code(exc) != "ConditionalCheckFailedException":
                    raise
                # Absent if the server does not support it, or if there is no such item.
                found: Any = exc.response.get("Item")
                return _claim(found) if found else self.get_many([key]).get(key)
        return claim

    def _get_batch(self, keys: Sequence[str]) -> dict[str, Claim]:
        """Look up at most `_READ_BATCH` distinct keys."""
        found: dict[str, Claim] = {}
        wanted: dict[str, Any] = {self.table: {"Keys": [{"pk": {"S": key}} for key in keys], "ConsistentRead": True}}
        for tried in range(_TRIES):
            with translated(f"claims in table {self.table}"):
                answer = self.client.batch_get_item(RequestItems=wanted)
            found.update((item["pk"]["S"], _claim(item)) for item in answer["Responses"].get(self.table, ()))
            wanted = answer.get("UnprocessedKeys") or {}
            if not wanted:
                return found
            self.sleep(pause_before_try(tried + 1))
        raise StoreUnavailable(f"claims in table {self.table}: some were not returned in each of {_TRIES} tries")

    def _each(self, items: Iterable[S], do: Callable[[S], T]) -> dict[S, T]:
        """Call a function for every distinct item, several at a time; return each result."""
        distinct = list(dict.fromkeys(items))
        return dict(zip(distinct, map_ordered(do, distinct), strict=True))

    def _place(self, key: str) -> str:
        return f"claim {key} in table {self.table}"


def _claim(item: dict[str, Any]) -> Claim:
    return Claim(item["holder"]["S"], datetime.fromisoformat(item["lease_until"]["S"]))
