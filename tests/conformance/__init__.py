"""One suite for every API that we work with: embedded in process, embedded over TLS, and a real kube-apiserver.

Each case is one behaviour. `api` (see `ways.py`) asks all three; `http` only the two that speak HTTP. A case that must
differ carries `@pytest.mark.differs("why, in one line")` and may then ask `api.is_kube`; docs/differences.md lists
these, and `test_differences.py` keeps the list.
"""
