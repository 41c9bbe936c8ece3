"""The state of manifests, files and lines: one fold over the records, which every command uses."""
