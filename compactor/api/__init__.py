"""The functions called by Python programs and by the command line. They print nothing and end no process."""
