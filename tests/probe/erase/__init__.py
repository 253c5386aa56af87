"""Tests of the eraser, on files that behave like drives."""
