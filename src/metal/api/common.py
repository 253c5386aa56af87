"""Types that several kinds share."""

from typing import Annotated, ClassVar

from metal.api.markers import ATOMIC, Choice, Defaulted, Length, TypeSchema
from metal.api.meta import Model


class LocalRef(Model, frozen=True, kw_only=True):
    """Names an object: cluster-scoped, or in the same namespace."""

    __schema__: ClassVar[TypeSchema] = ATOMIC

    name: str = ""
    """Name of the object."""


class ObjectRef(Model, frozen=True, kw_only=True):
    """Names a namespaced object."""

    namespace: Annotated[str, Length(most=63)]
    """Namespace of the object."""
    name: Annotated[str, Length(most=253)]
    """Name of the object."""


class Taint(Model, frozen=True, kw_only=True):
    """Keeps claims away from a server unless they tolerate it."""

    key: Annotated[str, Length(1)]
    """Name of the taint."""
    value: str = ""
    """Value that a toleration with operator Equal must repeat."""
    effect: Annotated[str, Choice("NoBind", "Evict"), Defaulted()] = "NoBind"
    """NoBind keeps new claims away; Evict is reserved and has no behaviour."""


class Toleration(Model, frozen=True, kw_only=True):
    """Lets a claim bind to a server with a matching taint."""

    key: Annotated[str, Length(1)]
    """Name of the taint that is tolerated."""
    operator: Annotated[str, Choice("", "Equal", "Exists")] = ""
    """Equal (also when empty) compares the value; Exists accepts any."""
    value: str = ""
    """Value that the taint must have with operator Equal."""
    effect: Annotated[str, Choice("", "NoBind", "Evict")] = ""
    """Effect that is tolerated; empty tolerates every effect."""


class LabelSelectorRequirement(Model, frozen=True, kw_only=True):
    """One expression of a label selector."""

    key: str
    """Label that is looked at."""
    operator: Annotated[str, Choice("In", "NotIn", "Exists", "DoesNotExist")]
    """In, NotIn, Exists or DoesNotExist."""
    values: tuple[str, ...] = ()
    """Values for In and NotIn."""


class LabelSelector(Model, frozen=True, kw_only=True):
    """Selects objects by their labels; both parts must hold, and an empty selector selects everything."""

    __schema__: ClassVar[TypeSchema] = ATOMIC

    match_labels: dict[str, str] = {}
    """Labels that must have exactly these values."""
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    """Expressions that must all hold."""
