"""What `compactor table --json` prints."""

from pydantic import Field

from compactor.cli.documents.common import Document
from compactor.ops.table.merge_report import MergeReport
from compactor.ops.table.table_report import TableReport
from compactor.ops.table.upkeep_report import UpkeepReport


class Table(Document, of=TableReport):
    """The table of the output, and what it has otherwise than the ledger."""

    needs_operator: bool = Field(
        description="Whether the table has other files than the ledger, or manifests are held back or stuck: the exit "
        "code is 3."
    )


class Upkeep(Document, of=UpkeepReport):
    """What `compactor table maintain` did. With `--dry-run` nothing is changed."""

    dry_run: bool = Field(description="Whether nothing was changed.")


class Merge(Document, of=MergeReport):
    """What `compactor table merge` did. With `--dry-run` nothing is changed."""

    dry_run: bool = Field(description="Whether nothing was changed.")


Root = Table | Upkeep | Merge
