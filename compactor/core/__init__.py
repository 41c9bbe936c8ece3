"""Values, contracts and pure decisions shared by all other folders."""
