"""Write tables of documents, comments of settings files and JSON Schemas from the code. Not part of the wheel."""
