"""What a model's C can be handed over as: plain files, a library, or a package of another build."""
