"""The model of the protocol in `spec/`: explores it with TLC, takes out its guards, and compares it with the code."""
