"""The functions of AWS Lambda: wiring only. Importing one of them does nothing."""
