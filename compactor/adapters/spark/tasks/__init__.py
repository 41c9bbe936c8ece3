"""What runs in the Python workers of Spark, and how it gets there."""
