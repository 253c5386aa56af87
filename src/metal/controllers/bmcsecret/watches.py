"""Adds the BMCSecret controller to a runtime."""

from metal.controllers.bmcsecret.reconciler import BMCSecretReconciler
from metal.controllers.shared.scope import Context
from metal.kube.controller.predicates import spec_or_metadata_changed
from metal.kube.controller.runtime import Runtime


def setup_bmc_secrets(context: Context, runtime: Runtime) -> BMCSecretReconciler:
    """Add the BMCSecret controller."""
    secrets = runtime.informer(context.kinds.bmc_secret)
    reconciler = BMCSecretReconciler(context, secrets)
    controller = runtime.controller("bmcsecret", reconciler.reconcile)
    controller.watches(secrets, predicate=spec_or_metadata_changed)
    return reconciler
