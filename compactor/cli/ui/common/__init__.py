"""What several commands show, in the same words."""
