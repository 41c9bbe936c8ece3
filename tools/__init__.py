"""What writes tables of the code into documents."""
