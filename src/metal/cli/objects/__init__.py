"""Commands on objects of any kind, like those of kubectl: get, describe, apply, delete.

May import `support`. Start with `get`; `references` parses KIND/NAME, `manifests` reads files, `events` reads Events.
"""
