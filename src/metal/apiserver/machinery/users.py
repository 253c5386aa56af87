"""Users: the subjects of requests."""

from dataclasses import dataclass


@dataclass(frozen=True)
class User:
    """The authenticated subject of a request. extra: further attributes that authentication found."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


SYSTEM = User("system:apiserver", groups=("system:masters",))
"""The API server itself, for garbage collection, namespaces and start-up."""
