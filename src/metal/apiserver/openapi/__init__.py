"""OpenAPI v3 documents of the served resources, and the minimum of OpenAPI v2 for old kubectl.

It imports patching and machinery. Start reading in `documents`.
"""
