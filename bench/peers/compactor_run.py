"""This project: one manifest of all files, through inspection, conversion, verification, ledger and publication."""

import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from bench.compactor_home import SAMPLE_ID, CompactorHome, S3Folder
from bench.protocol import first_keys, parser, run_passes
from compactor.core.documents.changes import Commit
from compactor.wiring import engines, streaming
from compactor.wiring.app import App
from compactor.wiring.opening import spark_session


def main() -> None:
    """Run the passes in one Spark session, as a running stream would."""
    arguments = parser()
    add_arguments(arguments)
    chosen = arguments.parse_args()
    chosen.input, chosen.output = chosen.input.resolve(), chosen.output.resolve()
    home = _home(chosen)
    shutil.rmtree(home.folder, ignore_errors=True)
    schema_file = None
    if chosen.discovery == "declared":
        schema_file = _schema_file(home.folder, first_keys(min(chosen.input.iterdir())))
    app = App(home.settings(engine=chosen.engine, discovery=chosen.discovery, schema_file=schema_file))
    runner = streaming.scheduler(app, engines.engine(app))
    numbers = count(1)
    versions = home.versions(app.store)

    def deliver(manifest_id: str, files: Sequence[Path]) -> int:
        """Deliver one manifest, as the stream does, and count its rejected lines."""
        uri = app.layout.manifest(manifest_id)
        app.store.create(uri, home.manifest(manifest_id, files, versions).to_json())
        batch = runner.run([uri])
        commits = [result.outcome for result in batch.finished if isinstance(result.outcome, Commit)]
        if len(commits) < len(batch.finished) or batch.failures:
            raise SystemExit(f"the manifest was not committed: {batch}"[:2000])
        return sum(file.rejected_lines for commit in commits for file in commit.files)

    kept: list[Path] = []
    if chosen.sample is not None:
        deliver(SAMPLE_ID, sorted(chosen.sample.resolve().iterdir()))
        kept += chosen.output.rglob("*.parquet")
    run_passes(chosen, lambda files, _: deliver(f"pass-{next(numbers)}", files), kept=kept)
    spark_session(app).stop()


def add_arguments(arguments: ArgumentParser) -> None:
    """The arguments that only this contender takes."""
    arguments.add_argument("--engine", choices=["native", "spark"], required=True)
    arguments.add_argument("--discovery", choices=["full", "declared"], default="full")
    arguments.add_argument("--sample", type=Path, help="Convert these files first, untimed; keep their output.")
    arguments.add_argument("--s3-folder", type=Path, help="Use this folder of an S3 server for all places.")
    arguments.add_argument("--endpoint-url", help="Reach the S3 server by this URL.")


def _home(chosen: Namespace) -> CompactorHome:
    inputs = (chosen.input,) if chosen.sample is None else (chosen.input, chosen.sample.resolve())
    s3 = S3Folder(chosen.s3_folder.resolve(), chosen.endpoint_url) if chosen.s3_folder else None
    return CompactorHome(chosen.output, inputs, s3)


def _schema_file(home: Path, keys: Sequence[str]) -> Path:
    """A schema file that declares keys as strings."""
    home.mkdir(parents=True)
    path = home / "schema.toml"
    path.write_text("".join(f'[[columns]]\nname = "{key}"\ntype = "string"\n' for key in keys))
    return path


if __name__ == "__main__":
    main()
