"""The ports carried out: in memory, on a local disk, in SQLite and on AWS. Importing this loads none of them."""
