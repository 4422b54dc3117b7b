"""Boards in the field: Raspberry Pis that Ansible sets up, and SSH connections through which their lab goes on."""
