"""The functions on AWS Lambda: wiring only."""
