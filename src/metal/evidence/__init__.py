"""Evidence of sanitization: what machines report, how it is kept, judged and signed. Knows no BMC."""
