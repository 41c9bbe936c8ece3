"""The records of the table sink."""
