"""What `compactor compact` shows at its end."""
