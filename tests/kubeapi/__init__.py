"""A real kube-apiserver for tests: etcd, kube-apiserver and kube-controller-manager as processes on loopback."""
