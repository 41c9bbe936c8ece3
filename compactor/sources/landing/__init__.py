"""Lands logs as NDJSON objects and plans these: each record in exactly one object, even if planners die."""
