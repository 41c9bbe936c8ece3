"""The context of a Glue job: made of a Spark context that is up."""

from typing import Any

from awsglue.record import note


class GlueContext:
    def __init__(self, spark_context: Any) -> None:
        note("context", properties=dict(spark_context.getConf().getAll()))
