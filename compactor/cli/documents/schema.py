"""What `compactor schema --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document, Time
from compactor.schema import catalog, schema


class Column(Document, of=schema.Column, without=["added_in", "field_id"]):
    """A column that a version added."""


class Retired(Document, of=schema.RetiredColumn, without=["retired_in", "field_id"]):
    """A column that a version retired."""


class Version(Document):
    """A schema version."""

    version: int = Field(description="Number of the version, from 1.")
    created_at: Time = Field(description="Time at which it was created.")
    manifest_id: str = Field(description="Manifest that caused it; empty if `compactor schema retire` did.")
    columns: int = Field(description="Number of its columns.")
    added: list[Column] = Field(description="Columns that it added.")
    retired: list[Retired] = Field(description="Columns that it retired.")


class Published(Document, of=catalog.Published):
    """What `compactor schema publish` did."""

    added: list[str] = Field(description="Columns that the table got.")
    other_types: list[catalog.OtherType] = Field(
        description="Columns whose types in the catalog a person has to correct."
    )


class Versions(Document):
    """The schema versions."""

    versions: list[Version] = Field(description="Schema versions, oldest first.")
    published: Published | None = Field(description="What was done to the table in the catalog; null unless published.")


Root = Versions
