"""What lets clients of other systems in: tokens and secrets of AWS."""
