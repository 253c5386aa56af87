"""`python -m tests.kubeapi`: a Kubernetes control plane to try things on, until Ctrl-C."""

import shutil
import signal

from tests.kubeapi.cluster import KubeCluster, scratch


def main() -> None:
    folder = scratch()
    cluster = KubeCluster(folder)
    try:
        cluster.start()
        print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)  # noqa: T201 - this program prints
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
