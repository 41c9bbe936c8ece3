"""What a topic of Amazon MSK or a stream of Kinesis costs: what the compactor causes as a reader, and all the rest.

A cluster or a stream is there for its producers and all its readers. So what it costs by itself is no part of an
estimate, but beside it. No I/O.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from compactor.cost.prices import GIB, CostLine, Price

Service = Literal["msk", "msk-serverless", "kinesis", "kinesis-on-demand"]
"""Where records come from: brokers, or a cluster or stream that is paid by use."""

PAYLOAD_UNIT_BYTES = 25 * 1024  # a record takes one unit for each 25 KB or part of it [AWS, Kinesis pricing]
ON_DEMAND_BYTES = 1024  # a record is rounded up to the next KB [the same page]
REPLICAS = 3  # of each record on brokers, in as many zones. A serverless cluster bills one


@dataclass(frozen=True, slots=True)
class TopicInput:
    """A topic or a stream that the load comes from."""

    service: Service  # what has it
    bytes_per_hour: float  # the load
    record_bytes: int = 1000  # the mean size of a record
    partitions: int = 24  # partitions of the topic, or shards of the stream
    brokers: int = 3  # the number of brokers, for `msk`
    broker_dollars: float | None = None  # what a broker costs an hour; None for a kafka.m5.large
    retention_hours: float = 24  # how long records are kept
    has_fan_out: bool = False  # whether the compactor has a throughput of its own, for `kinesis`

    @property
    def records_per_hour(self) -> float:
        return self.bytes_per_hour / self.record_bytes

    @property
    def gib_per_hour(self) -> float:
        return self.bytes_per_hour / GIB


def reader_lines(topic: TopicInput, prices: Mapping[str, Price]) -> Iterator[CostLine]:
    """What the compactor causes: it reads each record once, but for attempts that failed."""
    gib = topic.gib_per_hour
    match topic.service:
        case "msk-serverless":
            yield CostLine("MSK", "GB read", "counted", gib, prices["msk_serverless_out"])
        case "kinesis" if topic.has_fan_out:
            yield CostLine("Kinesis", "fan-out, shards", "counted", topic.partitions, prices["kinesis_fan_out_hour"])
            yield CostLine("Kinesis", "fan-out, GB", "counted", gib, prices["kinesis_fan_out_gb"])
        case "kinesis-on-demand":
            yield CostLine("Kinesis", "GB read", "counted", _rounded_gib(topic), prices["kinesis_on_demand_out"])
        case _:  # reading is part of what brokers and shards cost
            return


def producer_lines(topic: TopicInput, prices: Mapping[str, Price]) -> Iterator[CostLine]:
    """What is there for all who write and read."""
    kept_gib = topic.gib_per_hour * topic.retention_hours
    match topic.service:
        case "msk":
            price = prices["msk_broker_hour"]
            if topic.broker_dollars is not None:
                price = Price(topic.broker_dollars, 1, "broker-hour", "given by an option", price.as_of)
            yield CostLine("MSK", "broker-hours", "given", topic.brokers, price)
            yield CostLine("MSK", "GB kept", "given", kept_gib * REPLICAS, prices["msk_storage"])
        case "msk-serverless":
            yield CostLine("MSK", "cluster-hours", "given", 1, prices["msk_serverless_hour"])
            yield CostLine("MSK", "partition-hours", "given", topic.partitions, prices["msk_serverless_partition"])
            yield CostLine("MSK", "GB written", "given", topic.gib_per_hour, prices["msk_serverless_in"])
            yield CostLine("MSK", "GB kept", "given", kept_gib, prices["msk_storage"])
        case "kinesis":
            units = topic.records_per_hour * math.ceil(topic.record_bytes / PAYLOAD_UNIT_BYTES)
            yield CostLine("Kinesis", "shard-hours", "given", topic.partitions, prices["kinesis_shard_hour"])
            yield CostLine("Kinesis", "payload units", "given", units, prices["kinesis_put"])
        case "kinesis-on-demand":
            yield CostLine("Kinesis", "stream-hours", "given", 1, prices["kinesis_stream_hour"])
            yield CostLine("Kinesis", "GB written", "given", _rounded_gib(topic), prices["kinesis_on_demand_in"])


def _rounded_gib(topic: TopicInput) -> float:
    billed = math.ceil(topic.record_bytes / ON_DEMAND_BYTES) * ON_DEMAND_BYTES
    return topic.records_per_hour * billed / GIB
