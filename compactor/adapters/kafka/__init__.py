"""Kafka on real brokers, with librdkafka. The only package that imports `confluent_kafka`."""

from compactor.core.extras import need

need("kafka")
