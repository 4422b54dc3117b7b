"""Ways to send urgent messages over a narrow line, measured side by side: ours and those of others."""
