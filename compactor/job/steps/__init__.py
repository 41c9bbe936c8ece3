"""One manifest's life, from delivered to done: its steps, and what they ask and report."""
