"""What `benchmarks.captures` is made of: a big capture, and other programs that read it."""
