"""That nothing is lost or handed over twice: custody, outbox, dedup window, heartbeat, digest. Pure."""
