"""The job on Kubernetes: the file for the operator has the fields of its API, and starts what is there."""

from pathlib import Path
from typing import Any

import yaml

from compactor.wiring.settings_files import job_arguments

ROOT = Path(__file__).resolve().parents[2]

FIELDS = {
    "spec": {
        "type", "mode", "pythonVersion", "sparkVersion", "image", "mainApplicationFile", "arguments", "sparkConf",
        "restartPolicy", "driver", "executor",
    },
    "driver": {"cores", "memory", "serviceAccount"},
    "executor": {"cores", "memory", "instances"},
}  # fmt: skip
"""Of `SparkApplicationSpec`, `DriverSpec` and `ExecutorSpec` [kubeflow/spark-operator, api/v1beta2]."""


def test_the_file_for_the_operator() -> None:
    """Fields that its API knows, a driver in the cluster that is started again, and the entry with its arguments."""
    document: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "spark_application.yaml").read_text())
    assert (document["apiVersion"], document["kind"]) == ("sparkoperator.k8s.io/v1beta2", "SparkApplication")
    spec = document["spec"]
    assert spec.keys() <= FIELDS["spec"]
    assert spec["driver"].keys() <= FIELDS["driver"]
    assert spec["executor"].keys() <= FIELDS["executor"]
    assert (spec["type"], spec["mode"], spec["restartPolicy"]) == ("Python", "cluster", {"type": "Always"})
    entry = Path(spec["mainApplicationFile"].removeprefix("local://"))
    assert (ROOT / entry.name).is_file()
    assert job_arguments([entry.name, *spec["arguments"]])["CONFIG"]
