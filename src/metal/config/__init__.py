"""The configuration of a whole control plane: one YAML file, every option with a sentence, a unit and a default."""

from metal.config.load import ConfigError, load, parse
from metal.config.options import Advertise, BMCOptions, Config, Listen, Registries, Timeouts

__all__ = ["Advertise", "BMCOptions", "Config", "ConfigError", "Listen", "Registries", "Timeouts", "load", "parse"]
