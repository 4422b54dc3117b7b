"""Side-by-side runs against peers on one machine; each prints ratios.

`python -m benchmarks.<name> [--json]`. With `--json` standard output is one document:

    {"ratios": {name: ours / peer}, "limits": {name: most}, "seconds": {...}, "machine": {...}, ...}

A ratio compares two measurements of the same run, so that it means something on any machine. The exit code is 0 if
everything was measured, whatever the ratios; with `--check` it is 1 if a ratio is above its limit.
"""
