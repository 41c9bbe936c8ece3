"""The functions that Python programs call, and the command line, too. They print nothing and end no process."""
