"""How the rows of staged files are divided."""

from dataclasses import dataclass

from compactor.core.partitions import PartitionField


@dataclass(frozen=True, slots=True)
class PartitionRules:
    """The settings of partitions.

    Attributes:
        fields: The levels, outermost first.
        max_partitions: The most partitions of one manifest that get files of their own.
        target_file_bytes: The size of a file at which the next one of its partition begins.
        compression: The codec of the files.
    """

    fields: tuple[PartitionField, ...]
    max_partitions: int
    target_file_bytes: int
    compression: str
