"""Input of every shape: converted by each contender, compared with its output, and read over S3 and from files."""
