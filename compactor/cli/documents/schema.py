"""What `compactor schema --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document, Time
from compactor.schema.column_types import Epoch


class Column(Document):
    """A column that a version added."""

    name: str = Field(description="Name in the Parquet files.")
    type: str = Field(description="Type, such as `string` or `decimal(10,2)`.")
    key: str | None = Field(description="JSON key; null for the column of rescued data.")
    epoch: Epoch | None = Field(description="Unit of numbers in a timestamp column; else null.")
    source_uri: str = Field(description="First file that had the key; empty if the schema file declares the column.")


class Version(Document):
    """A schema version."""

    version: int = Field(description="Number of the version, from 1.")
    created_at: Time = Field(description="Time at which it was created.")
    manifest_id: str = Field(description="Manifest that caused it.")
    columns: int = Field(description="Number of its columns.")
    added: list[Column] = Field(description="Columns that it added.")


class Versions(Document):
    """The schema versions."""

    versions: list[Version] = Field(description="Schema versions, oldest first.")


Root = Versions
