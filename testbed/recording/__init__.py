"""Publications and actions of a run as recorded and as planned, and their difference. Pure: rows in, rows out."""
