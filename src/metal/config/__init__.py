"""The configuration file of the control plane: every option has a description, a unit and a default.

May import `metal.controllers` (defaults and settings of the reconcilers) and the packages below it. Start with
`options`; `load` reads the file, `check` validates values, and `describe` prints the file with all options.
"""

from metal.config.load import ConfigError, load, parse
from metal.config.options import Advertise, BMCOptions, Config, Listen, Registries, Timeouts

__all__ = ["Advertise", "BMCOptions", "Config", "ConfigError", "Listen", "Registries", "Timeouts", "load", "parse"]
