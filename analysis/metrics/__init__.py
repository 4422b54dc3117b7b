"""The metrics: each module has a declared SCHEMA and a function from DataFrames to a DataFrame of that schema."""
