"""What is known of an input file from its place: its date, its stream, and the columns of its path."""
