"""Shared by all packages: errors, files, names, and printing C."""
