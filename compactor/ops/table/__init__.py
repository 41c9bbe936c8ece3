"""The table of the output beside the ledger: what differs, and how a lost table is made again."""
