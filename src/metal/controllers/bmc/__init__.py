"""The BMC reconciler: a phase per module."""

from metal.controllers.bmc.reconciler import BMCReconciler, setup

__all__ = ["BMCReconciler", "setup"]
