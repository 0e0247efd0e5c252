"""Lineheat: what each line of a program costs, next to that line."""

__version__ = "0.1.0"
