"""This project: one manifest of all files, through inspection, conversion, verification, ledger and publication."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from bench.protocol import first_keys, parser, run_passes
from compactor.app import App
from compactor.manifest import Manifest, ManifestFile
from compactor.records import Commit
from compactor.settings import parse_settings


def main() -> None:
    """Run the passes in one Spark session, as a stream that is up would."""
    arguments = parser()
    arguments.add_argument("--engine", choices=["native", "spark"], required=True)
    arguments.add_argument("--discovery", choices=["full", "declared"], default="full")
    chosen = arguments.parse_args()
    chosen.input, chosen.output = chosen.input.resolve(), chosen.output.resolve()
    home = chosen.output.with_name(chosen.output.name + "-compactor")
    shutil.rmtree(home, ignore_errors=True)
    schema = {}
    if chosen.discovery == "declared":
        schema["file"] = str(_schema_file(home, first_keys(min(chosen.input.iterdir()))))
    app = App(
        parse_settings(
            {
                "paths": {
                    "manifests": str(home / "manifests"),
                    "output": str(chosen.output),
                    "state": str(home / "state"),
                },
                "input": {"allowed_prefixes": [str(chosen.input)], "discovery": chosen.discovery},
                "schema": schema,
                "convert": {"engine": chosen.engine},
            }
        )
    )
    runner = app.batch_runner(app.engine())
    numbers = count(1)

    def convert(files: Sequence[Path], _output: Path) -> None:
        """Deliver one manifest, as the stream does."""
        manifest = Manifest(
            manifest_id=f"pass-{next(numbers)}",
            date="2025-12-21",
            created_at=datetime.now(UTC),
            files=tuple(ManifestFile(uri=str(file), size_bytes=file.stat().st_size) for file in files),
        )
        uri = app.layout.manifest(manifest.manifest_id)
        app.store.create(uri, manifest.to_json())
        batch = runner.run([uri])
        if not all(isinstance(result.outcome, Commit) for result in batch.results) or batch.failures:
            raise SystemExit(f"the manifest was not committed: {batch}")

    run_passes(chosen, convert)
    app.spark.stop()


def _schema_file(home: Path, keys: Sequence[str]) -> Path:
    """A schema file that declares keys as strings."""
    home.mkdir(parents=True)
    path = home / "schema.toml"
    path.write_text("".join(f'[[columns]]\nname = "{key}"\ntype = "string"\n' for key in keys))
    return path


if __name__ == "__main__":
    main()
