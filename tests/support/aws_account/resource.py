"""A resource of the account."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deploy.existing_names import WITHIN, name_of


@dataclass(slots=True)
class Resource:
    """A resource of the account.

    Attributes:
        logical: Its name in its template, by which others of the stack refer to it.
        contents: The keys of a bucket's objects.
    """

    kind: str
    name: str
    properties: Mapping[str, Any]
    stack: str = ""
    logical: str = ""
    contents: list[str] = field(default_factory=list)


def has_own_name(resource: Resource) -> bool:
    """Whether the template gives a resource a name that another one could have."""
    return name_of(resource.kind, resource.properties) is not None and resource.kind not in WITHIN
