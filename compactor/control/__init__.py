"""Keeps the job running: watches Glue, queues and backlog, decides, and starts, drains, stops or tells somebody."""
