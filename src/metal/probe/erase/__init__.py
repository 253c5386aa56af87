"""Erases every drive of a machine, proves it by reading back, and tells the registry."""
