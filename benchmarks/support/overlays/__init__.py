"""Parts of the benchmark of overlays."""
