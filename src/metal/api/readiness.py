"""ServerReadinessRule: keeps claims away from servers until conditions that others report hold."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

from metal.api.common import LabelSelector
from metal.api.markers import IMMUTABLE, Choice, Defaulted, Length, ListMap, Required, Rule, Schema, TypeSchema
from metal.api.meta import Conditions, Model, ObjectMeta


class EnforcementMode(StrEnum):
    """For how long a rule looks at a server."""

    CONTINUOUS = "Continuous"
    BOOTSTRAP_ONLY = "BootstrapOnly"


class ConditionRequirement(Model, frozen=True, kw_only=True):
    """One condition that a server must have."""

    type: Annotated[str, Length(1, 316)]
    """Type of the condition."""
    required_status: Annotated[str, Choice("True", "False", "Unknown"), Required()] = ""
    """True, False or Unknown. Quote it in YAML: a bare True is a truth value there."""


class RuleTaint(Model, frozen=True, kw_only=True):
    """The taint of a server that is not ready."""

    key: Annotated[str, Length(1, 253)]
    """Name of the taint."""
    value: str = ""
    """Value that a toleration with operator Equal must repeat."""
    effect: Annotated[str, Choice("NoBind", "Evict"), Defaulted()] = "NoBind"
    """NoBind keeps new claims away; Evict is reserved and has no behaviour."""


class ServerReadinessRuleSpec(Model, frozen=True, kw_only=True):
    """Which servers, which conditions, which taint."""

    conditions: Annotated[
        tuple[ConditionRequirement, ...], ListMap("type"), Schema({"minItems": 1, "maxItems": 32}), Required()
    ] = ()
    """Conditions that must all hold; one that a server does not have does not hold."""
    enforcement_mode: Annotated[str, Choice(*EnforcementMode), Required()] = ""
    """Continuous puts the taint back when a condition no longer holds; BootstrapOnly is done once all have held."""
    taint: Annotated[RuleTaint | None, Required()] = None
    """Taint of servers that are not ready. It belongs to the rule on every server that the rule selects."""
    server_selector: LabelSelector = LabelSelector()
    """Labels of the servers that the rule is for; empty selects all."""


class ServerReadinessRuleStatus(Model, frozen=True, kw_only=True):
    """What became of the rule."""

    state: Annotated[str, Choice("", "Active", "Error")] = ""
    """Active, or Error when the rule cannot be applied."""
    since: datetime | None = None
    """When state last changed."""
    waiting_for: str = ""
    """What is awaited, in a few words; empty when nothing is."""
    observed_generation: int = 0
    """metadata.generation that this status was computed from."""
    conditions: Conditions = ()
    """Valid."""


class ServerReadinessRule(Model, frozen=True, kw_only=True):
    """Taints servers until their conditions are as required."""

    __schema__: ClassVar[TypeSchema] = TypeSchema(
        rules=(
            Rule(
                "self.spec.enforcementMode != 'BootstrapOnly' || size(self.metadata.name) <= 43",
                "the name of a rule with enforcementMode BootstrapOnly has at most 43 characters: an annotation "
                "is named after it",
            ),
        )
    )

    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ServerReadinessRuleSpec, Rule(IMMUTABLE, "spec is immutable: make another rule"), Required()] = (
        ServerReadinessRuleSpec()
    )
    status: ServerReadinessRuleStatus = ServerReadinessRuleStatus()
