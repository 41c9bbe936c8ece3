"""Keeps the job running: watches Glue, queues and backlog; starts, drains or stops the job, or sends notifications."""
