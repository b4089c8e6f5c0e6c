"""Front ends: from sound and other samples to rows of features, in the same bits here and on every board."""
