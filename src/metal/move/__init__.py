"""Moves all objects from one API to another, so that machines notice nothing and nobody acts on both."""
