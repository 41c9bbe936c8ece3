"""Examples of every command, which its help and the manual page show."""

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "accept": (
        (
            "compactor accept --dry-run --why 'retention was too short'",
            "Show which records of topics and streams are gone.",
        ),
        (
            "compactor accept --yes --why 'retention was too short' 2025-12-21-00f3a9c2",
            "Put on record that those of one manifest are not expected.",
        ),
        (
            "compactor accept --date 2025-12-21 --yes --why 'retention was too short'",
            "Put on record that those of one day are not.",
        ),
    ),
    "clean": (
        ("compactor clean --dry-run", "Show what a clean-up would delete."),
        ("compactor clean --archive-days 30", "Delete archived manifests after 30 days."),
        ("compactor clean --checkpoints", "Delete the checkpoints of all stopped runs."),
    ),
    "close": (
        ("compactor close", "Close what has been quiet for retention.close_after_days."),
        ("compactor close rows", "Close dates of the folder rows."),
        ("compactor close --json", "Give the result to a program."),
    ),
    "compact": (
        ("compactor compact logs rows", "Turn the NDJSON below logs into Parquet below rows."),
        ("compactor compact logs rows --dry-run", "Show what it would do, and write nothing."),
        ("compactor compact s3://bucket/raw s3://bucket/rows --deep", "Compare every value afterwards."),
    ),
    "control": (
        ("compactor control --dry-run", "Show what the next check would do."),
        ("compactor control", "Check now, and start, drain or stop the job."),
        ("compactor control --close-breaker", "Allow starts again after a repair."),
    ),
    "cost": (
        ("compactor cost", "Estimate the cost of the default load."),
        ("compactor cost --files-per-hour 50000 --worker-type G.1X --workers 3", "Estimate another load and cluster."),
        ("compactor cost --config compactor.toml", "Show also what the latest commits cost."),
    ),
    "demo": (
        ("compactor demo", "Run the demo on 100 MB."),
        ("compactor demo --size 1gb", "Run it on more."),
        ("compactor demo --local /tmp/demo", "Keep the input and the output to look at."),
    ),
    "deploy": (
        ("compactor deploy check dev", "Send a file through the deployment of config/dev.toml."),
        ("compactor --config s3://bucket/compactor.toml deploy check", "Take the settings from S3."),
        ("compactor deploy check prod --timeout 600 --json", "Give the hops to a program, after 10 minutes at most."),
    ),
    "dismiss": (
        ("compactor dismiss rows logs/notes.csv --why 'not a log'", "Give up a file that is not NDJSON."),
        ("compactor dismiss rows logs/a.gz logs/b.gz --why 'lost' --dry-run", "Show what would be given up."),
        ("compactor dismiss s3://bucket/raw/a.gz --why 'sent again as b.gz'", "Give up a file of a job."),
    ),
    "doctor": (
        ("compactor doctor", "Check this machine, and everything that the settings name."),
        ("compactor doctor --config s3://bucket/compactor.toml --elsewhere", "Check what a job on Glue needs."),
        ("compactor doctor --json", "Give the findings to a program."),
    ),
    "forget": (
        ("compactor forget --key user_id --value-file ids.txt --dry-run", "Show what holds one of the values."),
        ("compactor forget --key /user/id --value-file ids.txt --inputs delete", "Erase them, input files included."),
        ("compactor forget rows --key user_id --value-file - --yes", "Erase the values on stdin from the folder rows."),
    ),
    "init": (
        ("compactor init", "Ask for three places, and write compactor.toml."),
        ("compactor init --input logs --output rows --state rows.state", "Ask nothing."),
        ("compactor init --force other.toml", "Overwrite other.toml."),
    ),
    "plan": (
        ("compactor plan s3://bucket/raw --dry-run", "Show which manifests it would write."),
        ("compactor plan s3://bucket/raw --date 2025-12-21", "Plan one day again after a loss of events."),
        (
            "compactor plan --inventory s3://inventories/daily/bucket/all/2025-12-21T01-00Z/manifest.json --dry-run",
            "Show what a back-fill from an S3 Inventory would plan, and cost.",
        ),
    ),
    "rebuild": (
        ("compactor rebuild --dry-run", "Find files that are lost or damaged."),
        ("compactor rebuild --date 2025-12-21", "Make those of one day again."),
        ("compactor rebuild m-0001 --force", "Make the files of one manifest again, also if they add up."),
    ),
    "redrive": (
        ("compactor redrive manifests --dry-run", "Show which dead letters would be tried again."),
        ("compactor redrive files --reason missing", "Try files again that were missing."),
        ("compactor redrive rejects --date 2025-12-21 --yes", "Try the rejected lines of a day again."),
    ),
    "rejects": (
        ("compactor rejects rows", "Show rejected lines with what is wrong at which column."),
        ("compactor rejects rows --reason invalid_json --limit 20", "Show twenty with one reason."),
        ("compactor rejects rows --file logs/a.ndjson --raw", "Write the exact lines of one file."),
    ),
    "report": (
        ("compactor report", "Report on the last 24 hours in report.html."),
        ("compactor report --since 2025-12-01 --until 2025-12-08 --out week.html", "Report on a week."),
        ("compactor report --no-samples", "Leave input data out of the page."),
    ),
    "retire": (
        ("compactor retire --before 2025-12-01 --dry-run", "Show what would be removed of the dates before December."),
        ("compactor retire --before 2025-12-01 --yes", "Remove it without a prompt."),
        ("compactor retire rows --before 2025-12-01", "Retire dates of the folder rows."),
    ),
    "run": (
        ("compactor run", "Compact manifests as they arrive."),
        ("compactor run --once", "Compact what is waiting, and end."),
        ("compactor --log-format json run", "Log in JSON lines on a terminal, too."),
    ),
    "schema": (
        ("compactor schema", "Show the columns and the versions that added them."),
        ("compactor schema suggest logs", "Suggest a schema file for the NDJSON below logs."),
        ("compactor schema retire junk_1 junk_2", "Free the places of two columns."),
    ),
    "status": (
        ("compactor status", "Show the state of the job."),
        ("compactor status --watch", "Show it again every 5 seconds."),
        ("compactor status --json", "Give it to a program."),
    ),
    "stop": (
        ("compactor stop", "Ask all jobs to stop."),
        ("compactor stop --wait 600", "Wait up to 10 minutes for them."),
        ("compactor stop --json", "Give the result to a program."),
    ),
    "table": (
        ("compactor table", "Compare the files of the table with the ledger."),
        ("compactor table rebuild", "Make a lost table again, and add what is in no batch."),
        ("compactor table maintain --dry-run", "Show which snapshots and files of metadata would go."),
    ),
    "trace": (
        ("compactor trace logs/2025-12-21-a.ndjson", "Show what became of a file."),
        ("compactor trace m-0001", "Show what became of a manifest."),
        ("compactor trace s3://bucket/raw/a.ndjson --days 90", "Search 90 dates for an old file."),
    ),
    "verify": (
        ("compactor verify", "Prove that all rows add up."),
        ("compactor verify --deep", "Compare every value with the input."),
        ("compactor verify --date 2025-12-21", "Verify one day."),
    ),
}
"""By command: three calls, and what each does."""


def help_of(name: str) -> str:
    """The examples of a command as a paragraph that click prints as it is."""
    return "\n".join(["\b", "Examples:", *(f"  {call}\n      {meaning}" for call, meaning in EXAMPLES[name])])
