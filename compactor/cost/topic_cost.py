"""The cost of an Amazon MSK topic or a Kinesis stream: the compactor's share as a reader, and all the rest.

A cluster or a stream exists for its producers and all its readers. So its own cost is shown next to an estimate, not in
it. No I/O.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from compactor.cost.prices import GIB, CostLine, Item, Price, priced

Service = Literal["msk", "msk-serverless", "kinesis", "kinesis-on-demand"]
"""The source of records: brokers, or a cluster or stream that is billed by usage."""

PAYLOAD_UNIT_BYTES = 25 * 1024  # per record, rounded up to units of 25 KB [AWS, Kinesis pricing]
ON_DEMAND_BYTES = 1024  # a record is rounded up to the next KB [the same page]
REPLICAS = 3  # of each record on brokers, in as many zones. A serverless cluster bills one


@dataclass(frozen=True, slots=True)
class TopicInput:
    """A topic or stream as the source of a load."""

    service: Service  # the hosting service
    bytes_per_hour: float  # the load
    record_bytes: int = 1000  # the mean size of a record
    partitions: int = 24  # partitions of the topic, or shards of the stream
    brokers: int = 3  # number of brokers, for `msk`
    broker_dollars: float | None = None  # hourly price of a broker; None for a kafka.m5.large
    retention_hours: float = 24  # how long records are kept
    has_fan_out: bool = False  # whether the compactor has dedicated throughput, for `kinesis`

    @property
    def records_per_hour(self) -> float:
        return self.bytes_per_hour / self.record_bytes

    @property
    def gib_per_hour(self) -> float:
        return self.bytes_per_hour / GIB


def reader_items(topic: TopicInput) -> Iterator[Item]:
    """The compactor's share: it reads each record once, except after failed attempts."""
    gib = topic.gib_per_hour
    match topic.service:
        case "msk-serverless":
            yield "MSK", "GB read", "counted", gib, "msk_serverless_out"
        case "kinesis" if topic.has_fan_out:
            yield "Kinesis", "fan-out, shards", "counted", topic.partitions, "kinesis_fan_out_hour"
            yield "Kinesis", "fan-out, GB", "counted", gib, "kinesis_fan_out_gb"
        case "kinesis-on-demand":
            yield "Kinesis", "GB read", "counted", _rounded_gib(topic), "kinesis_on_demand_out"
        case _:  # reading is included in the price of brokers and shards
            return


def producer_lines(topic: TopicInput, prices: Mapping[str, Price]) -> tuple[CostLine, ...]:
    """The cost shared by all producers and readers."""
    if topic.broker_dollars is not None:
        given = Price(topic.broker_dollars, 1, "broker-hour", "given by an option", prices["msk_broker_hour"].as_of)
        prices = {**prices, "msk_broker_hour": given}
    return priced(_producer_items(topic), prices)


def _producer_items(topic: TopicInput) -> Iterator[Item]:
    kept_gib = topic.gib_per_hour * topic.retention_hours
    match topic.service:
        case "msk":
            yield "MSK", "broker-hours", "given", topic.brokers, "msk_broker_hour"
            yield "MSK", "GB kept", "given", kept_gib * REPLICAS, "msk_storage"
        case "msk-serverless":
            yield "MSK", "cluster-hours", "given", 1, "msk_serverless_hour"
            yield "MSK", "partition-hours", "given", topic.partitions, "msk_serverless_partition"
            yield "MSK", "GB written", "given", topic.gib_per_hour, "msk_serverless_in"
            yield "MSK", "GB kept", "given", kept_gib, "msk_storage"
        case "kinesis":
            units = topic.records_per_hour * math.ceil(topic.record_bytes / PAYLOAD_UNIT_BYTES)
            yield "Kinesis", "shard-hours", "given", topic.partitions, "kinesis_shard_hour"
            yield "Kinesis", "payload units", "given", units, "kinesis_put"
        case "kinesis-on-demand":
            yield "Kinesis", "stream-hours", "given", 1, "kinesis_stream_hour"
            yield "Kinesis", "GB written", "given", _rounded_gib(topic), "kinesis_on_demand_in"


def _rounded_gib(topic: TopicInput) -> float:
    billed = math.ceil(topic.record_bytes / ON_DEMAND_BYTES) * ON_DEMAND_BYTES
    return topic.records_per_hour * billed / GIB
