"""What writes tables of documents, comments of settings files and JSON Schemas from the code."""
