"""What is on record about closed dates and expired files, and the indexes over it."""
