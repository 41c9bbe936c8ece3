"""Each change is in a table of Iceberg once, and readers find its values."""

from tests.guards.guard import Guard

_CONTRACT = "tests/contract/test_table_catalogs.py"
_CATALOGS = "tests/unit/adapters/test_iceberg_catalogs.py"
_FILES = "tests/unit/adapters/test_iceberg_files.py"
_PARTITIONS = "tests/contract/test_table_partitions.py"
_PARTITIONED_OUTPUT = "tests/unit/job/test_partitioned_output.py"

_UPKEEP = "tests/contract/test_table_upkeep.py"
_FOLDER = "tests/unit/adapters/test_iceberg_upkeep.py"

ICEBERG = (
    Guard(
        "upkeep changes only the table that it was decided on",
        "adapters/iceberg/iceberg_table.py",
        "if table is None or self._head_of(table) != head:",
        "if table is None:",
        (_UPKEEP,),
    ),
    Guard(
        "the files of a table that was dropped stay",
        "adapters/iceberg/upkeep.py",
        "if found is not None and found.table_uuid != table.metadata.table_uuid:",
        "if False:",
        (_UPKEEP,),
    ),
    Guard(
        "snapshots expire only if no branch has moved",
        "adapters/iceberg/change.py",
        "if name != MAIN_BRANCH)",
        "if False)",
        (_FOLDER,),
    ),
    Guard(
        "merged manifests have the same files",
        "adapters/iceberg/change.py",
        "if counts[0] != counts[1]:",
        "if False:",
        (_FOLDER,),
    ),
    Guard(
        "a change is made only for the head that was read",
        "adapters/iceberg/iceberg_table.py",
        "if table is None or self._head_of(table) != head:",
        "if table is None:",
        (_CONTRACT,),
    ),
    Guard(
        "an answer that does not tell is no refusal",
        "adapters/iceberg/errors.py",
        "return 400 <= status < 500 and status not in _MAY_PASS",
        "return status not in _MAY_PASS",
        (_CATALOGS,),
    ),
    Guard(
        "a commit is not sent again as what a redirect makes of it",
        "adapters/iceberg/rest.py",
        "session.max_redirects = 0",
        "session.max_redirects = 5",
        (_CATALOGS,),
    ),
    Guard(
        "a signed request is sent once",
        "adapters/iceberg/rest.py",
        "if isinstance(adapter, HTTPAdapter):",
        "if False:",
        (_CATALOGS,),
    ),
    Guard(
        "a table that a person made is left alone",
        "adapters/iceberg/iceberg_table.py",
        "if OWNER not in table.properties:",
        "if False:",
        (_CATALOGS,),
    ),
    Guard(
        "a table that another stream begins to make is left alone",
        "adapters/iceberg/iceberg_table.py",
        "if table.properties[OWNER] != owner:",
        "if False:",
        (_CATALOGS,),
    ),
    Guard(
        "a file has the rows that the ledger names",
        "adapters/iceberg/data_files.py",
        "if (footer.num_rows, size_bytes) != (file.records, file.size_bytes):",
        "if False:",
        (_FILES,),
    ),
    Guard(
        "a file has the field ids and the types of the table",
        "adapters/iceberg/data_files.py",
        "if known is None or known.field_type != field.field_type:",
        "if False:",
        (_FILES,),
    ),
    Guard(
        "a file has the date of its partition in each row",
        "adapters/iceberg/data_files.py",
        "if file.records and (bounds != {day} or statistics.null_value_counts.get(number) != 0):",
        "if False:",
        (_FILES,),
    ),
    Guard(
        "a table has the partitions that its files are entered with",
        "adapters/iceberg/partitions.py",
        "if spec.fields != PARTITIONS.fields and own != str(spec.spec_id):",
        "if False:",
        (_PARTITIONS,),
    ),
    Guard(
        "a file is in a partition of the table only if all its rows are",
        "table/changes.py",
        "if not columns or file.holds_others:",
        "if not columns:",
        (_PARTITIONED_OUTPUT,),
    ),
)
