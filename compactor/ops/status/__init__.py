"""How the job stands, from what is stored: one screen that says what to do next."""
