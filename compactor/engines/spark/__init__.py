"""What the Spark engine needs beside Spark."""
