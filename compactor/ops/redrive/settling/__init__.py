"""Whether dead letters, quarantined files and rejected lines are settled."""
