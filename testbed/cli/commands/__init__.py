"""One file a command, or a family of small ones; each registers itself with the application."""
