"""The order in which CloudFormation creates a stack: AWS calls no function before all that it works with is there."""

import json
from collections.abc import Mapping
from typing import Any

from deploy.resolved import Document, Resolver

CALLS = ("SealerPermission", "JobStatePermission", "BuilderEventSource", "ControlSchedulePermission")
"""The resources by which AWS begins to call a function, in the order of their creation.

The control plane comes last: its first call writes to the work bucket and starts the job, also while nothing arrives.
"""


def with_calls_last(template: Mapping[str, Any], parameters: Mapping[str, str]) -> Document:
    """A copy of the template in which each resource of `CALLS` depends on those before it and on all others.

    Without that, a first deployment could fail after the first call. Its roll-back could not delete the work bucket,
    because "all objects (including all object versions and delete markers) in the bucket must be deleted before the
    bucket itself can be deleted" [S3 API, DeleteBucket].
    """
    changed: Document = json.loads(json.dumps(template))
    resolver, resources = Resolver(changed, parameters), changed["Resources"]
    created = [
        name
        for name, each in resources.items()
        if name not in CALLS and ("Condition" not in each or resolver.holds(each["Condition"]))
    ]
    for name in CALLS:
        resources[name]["DependsOn"] = sorted(created)
        created.append(name)
    return changed
