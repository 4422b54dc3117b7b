"""What the sections of a file mean together: one module for each part of the resolved topology."""
