"""Boards in the field: Ansible sets up Raspberry Pis, and SSH connections control their nodes."""
