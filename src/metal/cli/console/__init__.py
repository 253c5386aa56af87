"""A server's serial console, over SSH to its BMC."""
