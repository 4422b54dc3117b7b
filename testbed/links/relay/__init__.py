"""The user-space link emulator: rate, delay, jitter, loss and queue where the kernel has no netem."""
