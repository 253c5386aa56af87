"""Types that several kinds share."""

from typing import Annotated, ClassVar

from metal.api.markers import ATOMIC, Choice, Defaulted, Length, TypeSchema
from metal.api.meta import Model


class LocalRef(Model, frozen=True, kw_only=True):
    """Reference to a cluster-scoped object, or to an object in the same namespace."""

    __schema__: ClassVar[TypeSchema] = ATOMIC

    name: str = ""
    """Name of the object."""


class ObjectRef(Model, frozen=True, kw_only=True):
    """Reference to a namespaced object."""

    namespace: Annotated[str, Length(most=63)]
    """Namespace of the object."""
    name: Annotated[str, Length(most=253)]
    """Name of the object."""


class Taint(Model, frozen=True, kw_only=True):
    """Taint prevents claims that do not tolerate it from binding the server. Claims that are already bound are not
    affected."""

    key: Annotated[str, Length(1)]
    """Key of the taint."""
    value: str = ""
    """Value of the taint. A toleration with operator Equal must have the same value."""
    effect: Annotated[str, Choice("NoBind", "Evict"), Defaulted()] = "NoBind"
    """Effect of the taint: NoBind or Evict. NoBind prevents claims that do not tolerate the taint from binding the
    server. Evict is accepted, but not enforced: it neither prevents a claim from binding the server nor ends one.
    Defaults to NoBind."""


class Toleration(Model, frozen=True, kw_only=True):
    """Allows a claim to bind a server that has a matching taint."""

    key: Annotated[str, Length(1)]
    """Key of the taint to tolerate."""
    operator: Annotated[str, Choice("", "Equal", "Exists")] = ""
    """Relation of the key to the value: Equal or Exists. Equal requires the same value; Exists matches any value.
    Defaults to Equal."""
    value: str = ""
    """Value that the taint must have when the operator is Equal. Ignored when it is Exists."""
    effect: Annotated[str, Choice("", "NoBind", "Evict")] = ""
    """Effect of the taint to tolerate: NoBind or Evict. Empty matches every effect."""


class LabelSelectorRequirement(Model, frozen=True, kw_only=True):
    """An expression that selects objects by one label."""

    key: str
    """Key of the label."""
    operator: Annotated[str, Choice("In", "NotIn", "Exists", "DoesNotExist")]
    """Relation of the key to the values: In, NotIn, Exists or DoesNotExist."""
    values: tuple[str, ...] = ()
    """Values for the operators In and NotIn, of which at least one is required. Must be empty for Exists and
    DoesNotExist."""


class LabelSelector(Model, frozen=True, kw_only=True):
    """Selects objects by their labels. All of matchLabels and matchExpressions must match. An empty selector matches
    every object."""

    __schema__: ClassVar[TypeSchema] = ATOMIC

    match_labels: dict[str, str] = {}
    """Labels and the values that they must have."""
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    """Expressions that must all match."""
