"""Rows are divided into partitions, and none is lost, doubled or in another one."""

from tests.guards.guard import Guard

_ENGINE = "tests/unit/engines/test_partitioned_engine.py"
_OUTPUT = "tests/unit/job/test_partitioned_output.py"

PARTITIONS = (
    Guard(
        "each partition has the rows that were counted before they were divided",
        "engines/staged_files.py",
        "if found[values] < rows or (staged.are_partition_rows_exact and found[values] > rows):",
        "if False:",
        (_ENGINE,),
    ),
    Guard(
        "no row is lost while rows are divided",
        "engines/partitioned/splitting.py",
        "        if written:\n",
        "        if False:\n",
        (_ENGINE,),
    ),
    Guard(
        "the largest partitions are kept, and not those that come first",
        "engines/partitioned/counting.py",
        "short.most_common(rules.max_partitions)",
        "list(short.items())[: rules.max_partitions]",
        (_ENGINE,),
    ),
    Guard(
        "a value that is too long for a folder gets none",
        "engines/partitioned/counting.py",
        " if fits(rules.fields, values)})",
        "})",
        (_OUTPUT,),
    ),
    Guard(
        "a value leads out of no folder",
        "core/partitions.py",
        'f"%{ord(each):02X}" if each in _ESCAPED else each',
        "each",
        ("tests/unit/core/test_partitions.py",),
    ),
    Guard(
        "a row in the folder of another partition is a discrepancy",
        "ops/verify/values/contents.py",
        "        report.discrepancies += misplaced(self.rows, self.registry, commit)\n",
        "",
        (_OUTPUT,),
    ),
    Guard(
        "a file in another partition of the table is a discrepancy",
        "ops/verify/table/doubts.py",
        "if live.values and (file.holds_others or live.values != tuple(file.partition)):",
        "if False:",
        ("tests/contract/test_table_partitions.py",),
    ),
    Guard(
        "a rebuild uses no name of a partition again",
        "ops/rebuild/successor.py",
        "reuses_names = reuses_names and not (fields or previous.partition_by)",
        "pass",
        (_OUTPUT,),
    ),
    Guard(
        "a search for the files of a manifest looks into its partitions",
        "ops/verify/surplus.py",
        "if owner_of == state.layout.output_owner and _has_partitions(state, key):",
        "if False:",
        (_OUTPUT,),
    ),
)
