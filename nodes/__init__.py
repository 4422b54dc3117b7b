"""What runs inside a container or on a Pi: broker, sensor, subscriber."""
