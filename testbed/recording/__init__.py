"""What really happened in a run, beside what was planned; and how two such records differ. Pure: rows in, rows out."""
