"""The format of a topology file: its sections, their values, and the JSON Schema of both."""
