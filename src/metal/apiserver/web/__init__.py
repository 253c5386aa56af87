"""The HTTP server: an adapter from requests to the backend, with discovery, OpenAPI and content negotiation.

It imports backend, openapi and packages below them. Start reading in `app` (dispatch), then `handler`
(resources) and `documents`.
"""
