"""Shows the state of the job on one screen, with the next action."""
