"""Patches and field ownership: JSON patch, merge patch, strategic merge patch, server-side apply, managedFields.

It imports schema and machinery; all functions are pure. Start reading in `apply` (ownership) and `patch`.
"""
