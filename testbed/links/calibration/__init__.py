"""Asked against achieved: what a link of a profile really does, measured on scratch links of the same making."""
