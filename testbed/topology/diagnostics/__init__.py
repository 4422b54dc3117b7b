"""Problems of a file, each with its place, the line, a caret and a hint."""
