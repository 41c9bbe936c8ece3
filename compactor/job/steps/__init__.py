"""The steps of one manifest's life, from delivered to done."""
