"""What the dashboard has beyond the template: every alarm of streams and shards, and widgets with a line a stream.

The widgets search for metrics by the dimension `Stream`, so a further stream is in them without a change of the
dashboard. CloudWatch "search expression syntax": "SEARCH(' {Namespace, DimensionName1, DimensionName2, ...}
SearchTerm', 'Statistic')"; names with characters other than letters and digits are in quotation marks.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_HEIGHT, _WIDTH, _A_ROW = 6, 6, 4
_VARIABLE = re.compile(r"\$\{[^}]*\}")
_TOP = re.compile(r'"y": (\d+)')
_ALARM = "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:"
_HEIGHT_OF_ALARMS = 3  # of the template's widget, whose alarms stand in one row
_ALARMS_A_ROW = 16
_MOST_ALARMS = 100  # of one widget [CloudWatch API, Dashboard body structure: "can include as many as 100 alarms"]

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


def with_alarms(template: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the template whose dashboard shows every alarm in its first widgets, and all others below them."""
    changed: dict[str, Any] = json.loads(json.dumps(template))
    resources = changed["Resources"].values()
    names = [each["Properties"]["AlarmName"] for each in resources if each["Type"] == "AWS::CloudWatch::Alarm"]
    arns = [_ALARM + name["Fn::Sub"] for name in names]
    boxes = [arns[first : first + _MOST_ALARMS] for first in range(0, len(arns), _MOST_ALARMS)]
    heights = [2 + -(-len(each) // _ALARMS_A_ROW) for each in boxes]
    body = changed["Resources"]["Dashboard"]["Properties"]["DashboardBody"]
    first, last = body["Fn::Sub"].index('{"type": "alarm"'), body["Fn::Sub"].index("]}}") + len("]}}")
    shift = sum(heights) - _HEIGHT_OF_ALARMS
    below = _TOP.sub(lambda match: f'"y": {int(match[1]) + shift}', body["Fn::Sub"][last:])
    above = [json.dumps(_alarm_widget(sum(heights[:at]), heights[at], each)) for at, each in enumerate(boxes)]
    body["Fn::Sub"] = body["Fn::Sub"][:first] + ",\n".join(above) + below
    return changed


def _alarm_widget(top: int, height: int, arns: Sequence[str]) -> dict[str, Any]:
    about = {"title": "Alarms", "alarms": arns}
    return {"type": "alarm", "x": 0, "y": top, "width": 24, "height": height, "properties": about}


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
