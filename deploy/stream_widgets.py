"""Widgets of the dashboard with a line for each stream, also of those with jobs of their own.

They search for metrics by the dimension `Stream`, so a further stream is in them without a change of the dashboard.
CloudWatch "search expression syntax": "SEARCH(' {Namespace, DimensionName1, DimensionName2, ...} SearchTerm',
'Statistic')"; names with characters other than letters and digits are in quotation marks.
"""

import json
import re
from typing import Any

_HEIGHT, _WIDTH, _A_ROW = 6, 6, 4
_VARIABLE = re.compile(r"\$\{[^}]*\}")

WIDGETS = (
    ("Waiting manifests by stream", "ManifestsPending", "Maximum"),
    ("Age of the oldest manifest by stream, seconds", "OldestManifestAgeSeconds", "Maximum"),
    ("Arrival to visible by stream, p99 seconds", "ArrivalToVisibleSeconds", "p99"),
    ("Heartbeats by stream", "Heartbeat", "Sum"),
    ("Rows by stream", "RecordsOut", "Sum"),
    ("Input bytes by stream", "BytesIn", "Sum"),
    ("Rejected lines by stream", "RecordsRejected", "Sum"),
    ("Dead letters by stream", "ManifestsDeadLettered", "Sum"),
)
"""Title, metric and statistic of each."""


def with_stream_widgets(body: str) -> str:
    """The body of a dashboard, a text with variables of `Fn::Sub`, with a line for each stream at its end."""
    end = body.rstrip().removesuffix("}").rstrip().removesuffix("]").rstrip()
    top = _lowest(body)
    heading = {
        "type": "text",
        "x": 0,
        "y": top,
        "width": 24,
        "height": 1,
        "properties": {"markdown": "## Streams"},
    }
    found = [heading, *(_widget(at, top + 1, *each) for at, each in enumerate(WIDGETS))]
    return end + "".join(f",\n{json.dumps(each)}" for each in found) + "\n]}\n"


def _widget(at: int, top: int, title: str, metric: str, statistic: str) -> dict[str, Any]:
    terms = f'{{"${{MetricNamespace}}",Job,Environment,Stream}} MetricName="{metric}" Environment="${{Environment}}"'
    search = {"expression": f"SEARCH('{terms}', '{statistic}', 60)", "label": "${!PROP('Dim.Stream')}"}
    return {
        "type": "metric",
        "x": at % _A_ROW * _WIDTH,
        "y": top + at // _A_ROW * _HEIGHT,
        "width": _WIDTH,
        "height": _HEIGHT,
        "properties": {
            "title": title,
            "region": "${AWS::Region}",
            "view": "timeSeries",
            "period": 60,
            "metrics": [[search]],
        },
    }


def _lowest(body: str) -> int:
    """The row below all widgets."""
    widgets = json.loads(_VARIABLE.sub("0", body))["widgets"]
    return max(int(each["y"]) + int(each["height"]) for each in widgets)
