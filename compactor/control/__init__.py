"""Keeps the job running: watches Glue, queues and backlog, and starts, drains or stops the job, or notifies people."""
