"""What an input file's place determines: its date, its stream, and the columns from its path."""
