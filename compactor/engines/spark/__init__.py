"""The parts of the Spark engine that need no Spark; the engine itself is in `adapters/spark`."""
