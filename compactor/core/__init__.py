"""Values, contracts and pure decisions that every other folder uses."""
