"""The options that several commands of the scale benchmark have."""

from pathlib import Path

import click

SEED = click.option("--seed", default=7, show_default=True, help="Make the input from this seed.")

WORK = click.option(
    "--work",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(__file__).resolve().parents[2] / ".bench",
    help="Keep all files in this folder on a local disk.",
)

JSON_FILE = click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the results to this file."
)
