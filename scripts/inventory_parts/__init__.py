"""The inventory of the product: what it offers, how it is built and how fast it starts, as JSON files."""
