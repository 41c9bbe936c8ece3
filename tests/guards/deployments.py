"""A table of the catalog keeps what it has, a check of a deployment removes only its own, and a job has a cluster."""

from tests.guards.guard import Guard

_TABLE = "tests/contract/test_catalog_table.py"

DEPLOYMENTS = (
    Guard(
        "a table of the catalog keeps its columns",
        "adapters/aws/glue_table.py",
        '"Columns": [*storage.get("Columns", ()), *added]',
        '"Columns": added',
        (_TABLE,),
    ),
    Guard(
        "a table of the catalog that another writer changed is read again",
        "adapters/aws/glue_table.py",
        "return False\n                raise",
        "return True\n                raise",
        (_TABLE,),
    ),
    Guard(
        "no job waits for a catalog that fails",
        "upkeep/catalog_columns.py",
        "is_new = schema.version != self._version and not self._failures",
        "is_new = schema.version != self._version",
        (_TABLE,),
    ),
    Guard(
        "a check of a deployment removes no row of a producer",
        "ops/canary/checker.py",
        "if commit is None or not all(is_within(report.uri, canaries) for report in commit.files):",
        "if commit is None:",
        ("tests/end_to_end/test_deploy_check.py::test_a_file_that_shares_its_manifest",),
    ),
    Guard(
        "a job on Glue does not run on its driver alone",
        "settings/spark_conf.py",
        'if found.startswith("local") and not wanted.startswith("local"):',
        "if False:",
        ("tests/unit/settings/test_spark_conf.py",),
    ),
)
