"""Lists, starts and stops the runs of a job."""
