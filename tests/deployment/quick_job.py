"""The script that Glue runs, in haste: python -m tests.deployment.quick_job WORKERS SECONDS NATIVE --CONFIG PLACE.

Heartbeats and retries come in tenths of a second. A worker is a thread that takes some seconds for each task. Where
NATIVE is "no", the package of the job lacks the compiled engine.
"""

import sys
import time
from typing import Any
from unittest.mock import patch

import glue_entry
from compactor.adapters.local.native import threads
from compactor.cli.commands.job import run
from compactor.engines.native import bin_task
from compactor.job import retries, service
from compactor.ledger import heartbeat

BEAT_SECONDS = 0.2


def main() -> None:
    workers, seconds, native = sys.argv[1:4]
    del sys.argv[1:4]
    if native == "no":
        sys.modules["compactor_native"] = None  # type: ignore[assignment]
    heartbeat.HEARTBEAT_INTERVAL_SECONDS = BEAT_SECONDS
    service.HEARTBEAT_SECONDS = BEAT_SECONDS
    retries.STUCK_PAUSE_SECONDS = 1.0
    write_bin = bin_task.write_bin

    def slow(*given: Any, **named: Any) -> Any:
        time.sleep(float(seconds))
        return write_bin(*given, **named)

    patch.object(threads, "write_bin", slow).start()
    patch.object(run, "usable_threads", lambda: int(workers)).start()
    glue_entry.main()


if __name__ == "__main__":
    main()
