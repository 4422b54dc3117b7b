"""Parse the text of a file into valid sections; parse expectations, overrides and selectors."""
