"""What nodes send to each other, as bytes: the message header, chunks, interests, control messages. No algorithm."""
