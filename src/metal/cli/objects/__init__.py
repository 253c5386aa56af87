"""The everyday part of kubectl: get, describe, apply, delete."""
