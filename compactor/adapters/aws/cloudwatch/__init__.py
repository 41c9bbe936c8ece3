"""Sends metrics to CloudWatch, and reads them back."""
