"""What a period of work came to, as figures and as one page of HTML."""
