"""No publication is lost or delivered twice: custody, outbox, dedup window, heartbeat, digest. Pure."""
