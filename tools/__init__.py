"""What writes files of the repository from the code."""
