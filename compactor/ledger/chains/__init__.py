"""Chains of records that are only ever created, each where the one before it ends; notes of how far planning is."""
