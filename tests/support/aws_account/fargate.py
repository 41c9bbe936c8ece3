"""The sizes of tasks on Fargate, as AWS's description of its API says them."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

import botocore.session
from botocore.model import StructureShape

MIB_PER_GB = 1024


@cache
def fargate_sizes() -> Mapping[int, frozenset[int]]:
    """The MiB that a task may have, by its CPU units [ECS API, RegisterTaskDefinition, memory]."""
    model = botocore.session.get_session().get_service_model("ecs")
    shape = model.operation_model("RegisterTaskDefinition").input_shape
    assert isinstance(shape, StructureShape)
    return dict(_sizes(shape.members["memory"].documentation))


def _sizes(text: str) -> Iterator[tuple[int, frozenset[int]]]:
    for line in re.findall(r"<li>(.*?)</li>", text, re.DOTALL):
        memory, _, units = re.sub(r"<[^>]+>", "", line).partition(" - Available cpu values: ")
        numbers = list(_mib(memory))
        if "increments" in memory:
            first, last, step = numbers
            numbers = list(range(first, last + 1, step))
        yield int(units.split()[0]), frozenset(numbers)


def _mib(text: str) -> Iterator[int]:
    """The amounts of a text such as `Between 4096 (4 GB) and 16384 (16 GB)`, or `Between 16 GB and 60 GB`."""
    for number, unit in re.findall(r"(\d+) ?(GB)?", re.sub(r"\([^)]*\)", "", text)):
        yield int(number) * (MIB_PER_GB if unit else 1)
