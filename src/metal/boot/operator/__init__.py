"""Adapts the boot core to the API: ServerBootConfigurations become IPXEBootConfigs, with one writer of readiness."""
