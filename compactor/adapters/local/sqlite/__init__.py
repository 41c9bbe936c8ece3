"""What is kept in SQLite files: claims, memories of files, and lists that memory cannot hold."""
