"""Local copies of objects, kept equal to the API. Imports `client` and `meta`. Start with informer.py."""
