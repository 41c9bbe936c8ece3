"""Clients of AWS: each has the credentials of its moment, and reads no model that another one has read."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.loaders import JSONFileLoader, create_loader

from compactor.adapters.aws import clients


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The files that are read from now on, in a process without a client."""
    names: list[str] = []
    load = JSONFileLoader.load_file

    def noted(self: JSONFileLoader, path: str) -> object:
        found = load(self, path)
        if found is not None:
            names.append(Path(path).name)
        return found

    monkeypatch.setattr(JSONFileLoader, "load_file", noted)
    monkeypatch.setattr("botocore.session.create_loader", create_loader)  # tests with stand-ins make them share one
    clients._models.cache_clear()
    yield names
    clients._models.cache_clear()


def test_the_next_client_reads_nothing_again(read: list[str]) -> None:
    """Models take most of the time that a client takes to be made."""
    clients.s3_client("eu-west-1")
    assert {"service-2", "endpoints", "endpoint-rule-set-1"} <= set(read)
    read.clear()
    clients.s3_client("eu-west-1")
    assert read == []


@pytest.mark.usefixtures("read")
def test_clients_share_nothing_but_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment may change between two of them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    first = clients.s3_client("eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    second = clients.s3_client("eu-west-1")
    keys = [client._request_signer._credentials.access_key for client in (first, second)]
    assert keys == ["a", "other"]


@pytest.mark.usefixtures("read")
def test_sessions_leave_nothing_behind() -> None:
    """boto3 adds a folder of models for each session."""
    clients.aws_session()
    folders = list(clients._models().search_paths)
    for _ in range(10):
        clients.aws_session()
    assert clients._models().search_paths == folders
