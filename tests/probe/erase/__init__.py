"""Tests of the erasure, on files that behave like drives."""
