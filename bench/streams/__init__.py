"""The benchmark of ten streams in one job, of which one floods: what that costs the other nine."""
