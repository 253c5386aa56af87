"""`python -m tests.kubeapi`: a Kubernetes control plane to try things on, until Ctrl-C."""

import shutil
import signal
import sys

from tests.kubeapi.cluster import KubeCluster, scratch


def main() -> None:
    # Whoever ends it, and when: etcd's folder may be in memory and is never left behind.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    folder = scratch()
    cluster = KubeCluster(folder)
    try:
        cluster.start()
        print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)  # noqa: T201 - this program prints
        signal.pause()
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
