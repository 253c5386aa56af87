"""Errors of the boot core."""

UNSIGNED = ("SignatureMissing", "SignatureInvalid")
"""Reasons of an ImageError for an image that is not signed as the configuration requires."""


class ImageError(Exception):
    """An image is not available. `reason` is CamelCase; `transient` says whether a retry may succeed."""

    def __init__(self, reason: str, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.reason, self.transient = reason, transient


class IgnitionError(ValueError):
    """An Ignition config is not valid. `path` is a JSON path ($.storage.files[0].path); str() begins with it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = path, problem


class ButaneUnavailable(IgnitionError):
    """A document was not converted for a reason that is not in the document. `transient`: a retry may succeed."""

    def __init__(self, problem: str, *, transient: bool = False) -> None:
        super().__init__("the Butane document", problem)
        self.transient = transient


class ScriptError(ValueError):
    """A value cannot be used in an iPXE script."""
