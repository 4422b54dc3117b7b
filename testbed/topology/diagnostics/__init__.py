"""What is wrong with a file: each problem with its place, the line, a caret and a hint."""
