"""What deployments are made to."""

from collections.abc import Iterator

import pytest

from compactor.demo.local_aws import local_aws


@pytest.fixture(scope="session")
def stand_in() -> Iterator[str]:
    """A local stand-in for AWS, in a process of its own: a test that uses it empties it first."""
    with local_aws() as url:
        yield url
