"""The parts of the Spark engine that do not need Spark; the engine itself is in `adapters/spark`."""
