"""Devices: the link to them, the lines it runs over, and the check. Stands apart from the compiler."""
