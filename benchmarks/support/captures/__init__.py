"""What `benchmarks.captures` is made of: a big capture, and others who read it."""
