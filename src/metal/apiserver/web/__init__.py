"""The HTTP front: a thin adapter from requests to the backend."""
