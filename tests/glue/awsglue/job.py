"""The job: told of its begin and of its end."""

from typing import Any

from awsglue.context import GlueContext
from awsglue.record import note


class Job:
    def __init__(self, glue_context: Any) -> None:
        if not isinstance(glue_context, GlueContext):
            raise TypeError(f"expected a GlueContext, found {type(glue_context).__name__}")

    def init(self, job_name: str, args: dict[str, str]) -> None:
        note("init", job_name=job_name, args=args)

    def commit(self) -> None:
        note("commit")
