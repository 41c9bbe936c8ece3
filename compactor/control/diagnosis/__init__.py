"""What is wrong with the job, and how bad it is. Decisions, no I/O."""
