"""Parts of the benchmark of matching."""
