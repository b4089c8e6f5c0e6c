"""Loop nests: each owns its loops, tiles and borders, and is given the lanes that compute."""
