"""Who may do what on AWS: the roles of functions and job, and the policies of people, from one table."""
