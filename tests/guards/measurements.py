"""Measurements are sent once, are true, and cost a batch nothing."""

from tests.guards.guard import Guard

_CLOUDWATCH = "tests/contract/test_cloudwatch.py"
_REQUESTS = "tests/unit/adapters/test_cloudwatch_requests.py"
_METRICS = "tests/unit/telemetry/test_metrics.py"

MEASUREMENTS = (
    Guard(
        "measurements that CloudWatch did not take are sent again",
        "adapters/aws/cloudwatch/sink.py",
        "                self._queue.extendleft(reversed(batch))\n",
        "                self._queue.extendleft(())\n",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that wait keep their order",
        "adapters/aws/cloudwatch/sink.py",
        "                self._queue.extendleft(reversed(batch))\n",
        "                self._queue.extendleft(batch)\n",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that wait for CloudWatch are bounded",
        "adapters/aws/cloudwatch/sink.py",
        "        while len(self._queue) > self.max_queued:\n",
        "        while False:\n",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that went are counted once",
        "adapters/aws/cloudwatch/sink.py",
        "self._lost_values_told += 0 if untold is None else round(untold.counts[0][0])",
        "pass",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that CloudWatch refuses do not hold up those behind them",
        "adapters/aws/cloudwatch/sink.py",
        'return "refused" if refused else "none"',
        'return "none"',
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that became too old do not make CloudWatch refuse new ones",
        "adapters/aws/cloudwatch/sink.py",
        "            self._forget_until(now - timedelta(seconds=MAX_AGE_SECONDS))\n",
        "",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements without sense never cost a batch",
        "adapters/aws/cloudwatch/sink.py",
        "        except Exception as exc:  # noqa: BLE001 - no measurement is worth a batch\n",
        "        except ZeroDivisionError as exc:\n",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that are no numbers never leave",
        "adapters/aws/cloudwatch/requests.py",
        "return abs(value) <= _GREATEST",
        "return True",
        (_REQUESTS,),
    ),
    Guard(
        "measurements of a request stay below the size that CloudWatch takes",
        "adapters/aws/cloudwatch/requests.py",
        "        if size_bytes > MAX_REQUEST_BYTES:\n",
        "        if False:\n",
        (_REQUESTS,),
    ),
    Guard(
        "measurements of a request are as few metrics as CloudWatch takes",
        "adapters/aws/cloudwatch/requests.py",
        "in islice(data, MAX_DATA // copies):",
        "in data:",
        (_REQUESTS,),
    ),
    Guard(
        "measurements of one metric are as few values as CloudWatch takes",
        "adapters/aws/cloudwatch/requests.py",
        "tuple(islice(pairs, MAX_VALUES))",
        "tuple(pairs)",
        (_REQUESTS,),
    ),
    Guard(
        "measurements of a run have left before it ends",
        "job/service.py",
        "                self.metrics.flush(FLUSH_SECONDS)\n",
        "",
        (_METRICS + "::test_a_run_ends_with_its_figures_sent",),
    ),
    Guard(
        "measurements of latency are those of files that became visible alone",
        "ledger/work_time.py",
        " for file in manifest.files if file.uri in compacted]",
        " for file in manifest.files]",
        (_METRICS + "::test_arrival_to_visible",),
    ),
    Guard(
        "a file that a listing found is no older than the listing",
        "ledger/work_time.py",
        "manifest.listed_at or ",
        "",
        ("tests/unit/ledger/test_work_time.py",),
    ),
    Guard(
        "a folder that a person compacts has no SLA",
        "settings/settings.py",
        "not self.folder or",
        "True or",
        ("tests/unit/settings/test_compact_paths.py::test_sla_of_a_folder",),
    ),
    Guard(
        "measurements of latency are few enough for one value of a metric",
        "job/batch_metrics.py",
        ".coarsened(MAX_DISTINCT_LATENCIES)",
        "",
        (_METRICS + "::test_arrivals_of_many_files",),
    ),
)
