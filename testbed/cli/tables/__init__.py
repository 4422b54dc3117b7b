"""Tables that several commands show; a table of one command alone is in the command's file."""
