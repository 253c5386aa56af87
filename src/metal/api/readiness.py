"""ServerReadinessRule taints servers until the conditions that other components report are as required."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar

from metal.api.common import LabelSelector
from metal.api.markers import IMMUTABLE, Choice, Defaulted, Length, ListMap, Required, Rule, Schema, TypeSchema
from metal.api.meta import Conditions, Model, ObjectMeta


class EnforcementMode(StrEnum):
    """How long a rule applies to a server."""

    CONTINUOUS = "Continuous"
    BOOTSTRAP_ONLY = "BootstrapOnly"


class ConditionRequirement(Model, frozen=True, kw_only=True):
    """A condition that a server must have."""

    type: Annotated[str, Length(1, 316)]
    """Type of the condition."""
    required_status: Annotated[str, Choice("True", "False", "Unknown"), Required()] = ""
    """Required status of the condition: True, False or Unknown. Quote the value in YAML, where an unquoted True is a
    boolean."""


class RuleTaint(Model, frozen=True, kw_only=True):
    """Taint of the servers that are not ready."""

    key: Annotated[str, Length(1, 253)]
    """Key of the taint."""
    value: str = ""
    """Value of the taint. A toleration with operator Equal must have the same value."""
    effect: Annotated[str, Choice("NoBind", "Evict"), Defaulted()] = "NoBind"
    """Effect of the taint: NoBind or Evict. NoBind prevents claims that do not tolerate the taint from binding the
    server. Evict is accepted, but not enforced: it neither prevents a claim from binding the server nor ends one.
    Defaults to NoBind."""


class ServerReadinessRuleSpec(Model, frozen=True, kw_only=True):
    """Desired state of a rule: the servers, the conditions that they must have, and the taint."""

    conditions: Annotated[
        tuple[ConditionRequirement, ...], ListMap("type"), Schema({"minItems": 1, "maxItems": 32}), Required()
    ] = ()
    """Conditions that a server must have. All of them must be met; a condition that the server does not have is not
    met."""
    enforcement_mode: Annotated[str, Choice(*EnforcementMode), Required()] = ""
    """Continuous or BootstrapOnly. Continuous adds the taint again when a condition is no longer met. BootstrapOnly no
    longer applies the rule to a server that has met all conditions once."""
    taint: Annotated[RuleTaint | None, Required()] = None
    """Taint of the selected servers that do not meet the conditions. It is removed from selected servers that meet
    them, even if another client has added it."""
    server_selector: LabelSelector = LabelSelector()
    """Selects the servers by their labels. An empty selector selects all servers."""


class ServerReadinessRuleStatus(Model, frozen=True, kw_only=True):
    """Observed state of a rule."""

    state: Annotated[str, Choice("", "Active", "Error")] = ""
    """State of the rule: Active, or Error when the rule is not valid."""
    since: datetime | None = None
    """Time at which the state last changed."""
    waiting_for: str = ""
    """Human-readable description of what the controller currently waits for. Empty when it waits for nothing."""
    observed_generation: int = 0
    """The most recent metadata.generation of the object that the controller has observed."""
    conditions: Conditions = ()
    """Conditions of the rule: Valid (the rule is applied)."""


class ServerReadinessRule(Model, frozen=True, kw_only=True):
    """ServerReadinessRule taints the selected servers that do not have the required conditions."""

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
    spec: Annotated[ServerReadinessRuleSpec, Rule(IMMUTABLE, "spec is immutable: create another rule"), Required()] = (
        ServerReadinessRuleSpec()
    )
    status: ServerReadinessRuleStatus = ServerReadinessRuleStatus()
