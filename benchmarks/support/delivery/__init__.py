"""Ways to send urgent messages over a narrow link, measured side by side: ours and those of others."""
