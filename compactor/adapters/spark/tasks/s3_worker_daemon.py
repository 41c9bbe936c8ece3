"""Spark's daemon of Python workers for a job on S3: it also loads what clients of S3 need, which takes 0.1 s."""

from compactor.adapters.spark.tasks.worker_daemon import main


def load_client() -> None:
    """Load the modules of the S3 store, and the model that its clients are made from."""
    from compactor.adapters.aws.clients import read_models  # noqa: PLC0415 - it may be missing
    from compactor.adapters.aws.s3 import store  # noqa: F401, PLC0415

    read_models("s3")


if __name__ == "__main__":
    main(load_client)
