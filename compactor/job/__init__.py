"""The streaming job: intake, compaction, publication, recovery and retention."""
