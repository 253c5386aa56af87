"""Types of conditions that one controller reports and another reads."""

BOOTED = "Booted"
"""ServerClaim: its image has booted."""
EVENTS = "Events"
"""BMC: its events arrive."""
RESET = "Reset"
"""BMC: it is restarting."""
