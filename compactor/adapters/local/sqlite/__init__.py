"""SQLite files: claims, caches of seen files, and lists that exceed memory."""
