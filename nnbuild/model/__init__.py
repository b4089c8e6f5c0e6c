"""A network as frozen values, its verification, and sample files."""
