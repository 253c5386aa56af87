"""`python -m tests.kubeapi`: a Kubernetes control plane to try things on, until Ctrl-C."""

import signal
import sys

from tests.kubeapi.cluster import running


def main() -> None:
    # Whoever ends it, and when: etcd's folder may be in memory and is never left behind.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    with running() as cluster:
        print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)  # noqa: T201 - this program prints
        signal.pause()


if __name__ == "__main__":
    main()
