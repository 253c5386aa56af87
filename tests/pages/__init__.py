"""Generates docs/behaviour.md and docs/failures.md from the tests that show each of their statements.

A test states what it shows with the marker `behaviour`; the rows of `tests.sim.test_failures_*` are the other page.
`python -m tests.pages` writes both pages. Start reading in `behaviour`.
"""
