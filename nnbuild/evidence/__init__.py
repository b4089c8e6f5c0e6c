"""The evidence pack: how a program was proved, traced, compared and covered, as files that a short script re-checks."""
