"""Keeps BMCSecrets in the form that the BMC controller reads: credentials in data, and a condition."""
