"""Reads measurements back from CloudWatch."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from compactor.adapters.aws.errors import translated

Statistic = Literal["Sum", "Average", "Maximum"]

_DAY_SECONDS = 86_400  # one period for all measurements


def metric_statistic(
    client: Any, namespace: str, name: str, dimensions: Mapping[str, str], statistic: Statistic, *, now: datetime
) -> float | None:
    """A statistic over the last day's values of a metric with exactly these dimensions; None without values."""
    with translated(f"metric {name} in {namespace}"):
        answer = client.get_metric_statistics(
            Namespace=namespace,
            MetricName=name,
            Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
            StartTime=now - timedelta(seconds=_DAY_SECONDS),
            EndTime=now + timedelta(hours=1),
            Period=_DAY_SECONDS + 3600,
            Statistics=[statistic],
        )
    points = [point[statistic] for point in answer["Datapoints"]]
    if not points:
        return None
    return float(sum(points) if statistic == "Sum" else max(points))
