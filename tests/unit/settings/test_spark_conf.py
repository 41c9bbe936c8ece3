"""The Spark properties of a session: what binds a driver to this machine stays on this machine."""

import pytest

from compactor.core.errors import SettingsError
from compactor.settings.spark_conf import check_cluster, master_is_given, spark_properties


def properties(
    master: str = "",
    *,
    is_master_given: bool = False,
    converts_rows: bool = True,
    uses_s3: bool = False,
    **conf: str,
) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in conf.items()}
    return spark_properties(
        conf={**named, **({"spark.master": master} if master else {})},
        region="",
        endpoint_url="",
        uses_s3=uses_s3,
        is_master_given=is_master_given,
        converts_rows=converts_rows,
    )


@pytest.mark.parametrize(
    ("master", "is_master_given", "conf", "is_local"),
    [
        ("local[*]", False, {}, True),
        ("", False, {}, True),
        ("", False, {"spark_master": "local[2]"}, True),
        ("", True, {}, False),
        ("spark://10.0.0.1:7077", False, {}, False),
        ("", False, {"spark_master": "yarn"}, False),
    ],
)
def test_only_a_local_master_binds_the_driver_to_this_machine(master, is_master_given, conf, is_local):
    """Executors on other machines must reach the driver, so its address is left to the owner of the master."""
    found = properties(master, is_master_given=is_master_given, **conf)
    assert ("spark.driver.host" in found, "spark.driver.bindAddress" in found) == (is_local, is_local)


@pytest.mark.parametrize(
    ("env", "given"), [({}, False), ({"PYSPARK_GATEWAY_PORT": "4040"}, True), ({"SPARK_MASTER": "yarn"}, True)]
)
def test_a_given_master(env, given):
    """Spark-submit, Glue and a variable are told from a plain start."""
    assert master_is_given(env) is given


@pytest.mark.parametrize("converts_rows", [False, True])
def test_the_second_compiler_is_for_a_jvm_that_converts_rows(converts_rows):
    """A JVM that only schedules tasks would compile beside the tasks, for nothing."""
    found = properties("local[*]", converts_rows=converts_rows)["spark.driver.extraJavaOptions"]
    assert ("TieredStopAtLevel=1" not in found) is converts_rows
    assert "spark.driver.extraJavaOptions" not in properties("yarn", converts_rows=converts_rows)


def test_settings_have_the_last_word():
    """A property of the settings overrides the compactor's own."""
    assert properties("local[*]", spark_driver_memory="9g")["spark.driver.memory"] == "9g"


def test_no_cluster() -> None:
    """Spark on the driver alone is refused, unless the settings ask for it: workers would be paid for and idle."""
    with pytest.raises(SettingsError, match=r"Spark runs only on this machine \(local\[\*\]\)"):
        check_cluster("local[*]", "")
    check_cluster("local[2]", "local[2]")
    for master in ("jes", "spark://host:7077", "yarn", "k8s://https://host"):
        check_cluster(master, "")
