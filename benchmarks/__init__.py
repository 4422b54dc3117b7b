"""Side-by-side runs against peers; each prints ratios."""
