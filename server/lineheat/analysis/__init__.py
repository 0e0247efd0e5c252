"""Snapshot -> numbers: the only place where self and total are computed."""
