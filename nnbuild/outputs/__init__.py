"""Forms in which a model's C is delivered: plain files, a library, or a package for another build system."""
