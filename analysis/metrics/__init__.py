"""The metrics: each module has a SCHEMA and a function from DataFrames to a DataFrame of that schema."""
