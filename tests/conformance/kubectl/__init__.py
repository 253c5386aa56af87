"""One script of commands that a user types, run by the real kubectl on both homes; the answers must be equal.

`reading.py`, `writing.py`, `builtin.py` and `refusals.py` are the script, as data (`step.py`). `runner.py` plays it,
`normal.py` takes out what no two runs have in common (times, UIDs, versions), `test_kubectl.py` compares.
"""
