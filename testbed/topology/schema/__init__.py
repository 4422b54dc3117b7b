"""What a topology file may say: its sections, the values in them, and both as JSON Schema."""
