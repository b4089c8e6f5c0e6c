"""What every room may use: errors, files, names, and how C is spelt and written."""
