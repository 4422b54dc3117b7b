"""The actions of a scenario: what each does to nodes and links, and what undoes it."""
