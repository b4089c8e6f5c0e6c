"""Front ends: turn sound and other samples into rows of features, with the same bits here and on every board."""
