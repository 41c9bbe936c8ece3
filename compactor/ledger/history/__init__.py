"""Records of closed dates and expired files, and the indexes over them."""
