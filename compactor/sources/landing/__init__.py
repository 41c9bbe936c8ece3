"""Lands logs as NDJSON objects and plans these: each record in one object, whatever becomes of planners."""
