"""What the benchmarks are made of: peers, an engine of their own, labs, reports."""
