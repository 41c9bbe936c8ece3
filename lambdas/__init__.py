"""The handlers of AWS Lambda. The wheel leaves them out; their bodies are in `compactor.wiring.functions`."""
