"""What puts the components together, once for each kind of process."""
