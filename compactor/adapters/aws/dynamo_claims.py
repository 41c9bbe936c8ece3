"""Claims in DynamoDB: one item a key, decided by conditional writes."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from compactor.adapters.aws.errors import error_code, translated
from compactor.errors import StoreUnavailable
from compactor.ports import Claim

_THREADS = 16
_TRIES = 5
_SECONDS_PER_DAY = 86_400

T = TypeVar("T")


class DynamoClaims:
    """Claims as items of one table.

    An item counts until DynamoDB has removed it, which may be days after its time to live ended.

    Args:
        client: A boto3 client of DynamoDB, as `dynamodb_client` makes it.
        table: A table with the string partition key `pk`, and `expires_at` as its time-to-live attribute.
        ttl_days: How long a claim lives from when it was made; longer than an event may be late or repeated.
    """

    def __init__(self, client: Any, table: str, ttl_days: float) -> None:
        self._client = client
        self._table = table
        self._ttl_seconds = ttl_days * _SECONDS_PER_DAY

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        claims = self._each(keys, lambda key: self._claim_one(key, holder, now, lease_seconds))
        return {key: claims[key] for key in keys}

    def take_over(self, key: str, *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float) -> bool:
        taken = Claim(to_holder, now + timedelta(seconds=lease_seconds), settled=False)
        values = {":from": {"S": from_holder}, ":no": {"BOOL": False}}
        found = self._put(key, taken, now, "holder = :from AND settled = :no", ExpressionAttributeValues=values)
        return found is taken or (found is not None and found.holder == to_holder)

    def settle(self, keys: Sequence[str], holder: str) -> None:
        self._each(keys, lambda key: self._settle_one(key, holder))

    def get(self, key: str) -> Claim | None:
        with translated(self._place(key)):
            answer = self._client.get_item(TableName=self._table, Key={"pk": {"S": key}}, ConsistentRead=True)
        return _claim(answer["Item"]) if "Item" in answer else None

    def _claim_one(self, key: str, holder: str, now: datetime, lease_seconds: float) -> Claim:
        wanted = Claim(holder, now + timedelta(seconds=lease_seconds), settled=False)
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
            "settled": {"BOOL": claim.settled},
            "expires_at": {"N": str(int(now.timestamp() + self._ttl_seconds))},
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
                return _claim(found) if found else self.get(key)
        return claim

    def _settle_one(self, key: str, holder: str) -> None:
        with translated(self._place(key)):
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key={"pk": {"S": key}},
                    UpdateExpression="SET settled = :yes",
                    ConditionExpression="holder = :holder",
                    ExpressionAttributeValues={":yes": {"BOOL": True}, ":holder": {"S": holder}},
                )
            except ClientError as exc:
                if error_code(exc) != "ConditionalCheckFailedException":
                    raise

    def _each(self, keys: Sequence[str], do: Callable[[str], T]) -> dict[str, T]:
        """Do something for every key, several at a time."""
        distinct = list(dict.fromkeys(keys))
        if len(distinct) <= 1:
            return {key: do(key) for key in distinct}
        with ThreadPoolExecutor(min(_THREADS, len(distinct)), "claims") as threads:
            return dict(zip(distinct, threads.map(do, distinct), strict=True))

    def _place(self, key: str) -> str:
        return f"claim {key} in table {self._table}"


def _claim(item: dict[str, Any]) -> Claim:
    return Claim(item["holder"]["S"], datetime.fromisoformat(item["lease_until"]["S"]), item["settled"]["BOOL"])
