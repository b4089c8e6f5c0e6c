"""Integer layers on cores without multiply-accumulate of pairs: one multiplication computes two products."""
