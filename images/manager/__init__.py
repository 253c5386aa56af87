"""The operator's own container image: Debian's Python, the locked dependencies and metal, and nothing else."""
