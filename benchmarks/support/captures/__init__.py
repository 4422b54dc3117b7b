"""Parts of `benchmarks.captures`: a big capture, and other programs that read it."""
