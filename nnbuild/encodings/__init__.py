"""How constants are stored in fewer bytes than one a number, each with its way back to the same integers."""
