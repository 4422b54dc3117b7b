"""Parts of the benchmarks: peers, an engine of their own, labs, reports."""
