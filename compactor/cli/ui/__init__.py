"""Everything that commands show on a terminal."""
