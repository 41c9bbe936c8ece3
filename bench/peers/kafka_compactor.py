"""This project on a topic: landing and the whole job on the native engine, without Spark."""

import shutil
from itertools import count

from bench.kafka.feeding import CLUSTER, TOPIC, Filled
from bench.protocol import parser, time_passes
from compactor.adapters.local.native.threads import usable_threads
from compactor.core.logs.names import KAFKA, LogName
from compactor.settings.settings import parse_settings
from compactor.sources.plan import MAX_MANIFESTS_PER_PLAN
from compactor.wiring import streaming
from compactor.wiring.app import App


def main() -> None:
    """Run the passes, each with a state of its own, in which nothing was landed."""
    chosen = parser().parse_args()
    filled = Filled.kept(chosen.input)
    topic = LogName(KAFKA, CLUSTER, TOPIC)
    folder = chosen.output.resolve().with_name("compactor-state")
    shutil.rmtree(folder, ignore_errors=True)
    numbers = count(1)

    def convert() -> int:
        state = folder / str(next(numbers))
        settings = parse_settings(
            {
                "paths": {
                    "manifests": str(state / "manifests"),
                    "output": str(chosen.output.resolve()),
                    "state": str(state / "state"),
                },
                "input": {"allowed_prefixes": [str(topic)]},
                "kafka": {"clusters": {CLUSTER: {"bootstrap.servers": filled.servers}}},
                "convert": {"engine": "native"},
                "stream": {"source": "listing"},
                "metrics": {"sink": "none"},
            }
        )
        app = App(settings)
        plan = streaming.lander(app, KAFKA).land(topic, max_manifests=MAX_MANIFESTS_PER_PLAN)
        report = streaming.threaded_job(app, usable_threads()).run(once=True)
        if report.failures or report.dead_lettered or plan.has_more:
            raise SystemExit(f"not all was planned and committed: {plan} {report}"[:2000])
        return report.rejected_lines

    time_passes(chosen, filled.value_bytes, convert)


if __name__ == "__main__":
    main()
