"""CEL rules of CRDs (x-kubernetes-validations): compiled and evaluated.

It imports machinery. Start reading in `rules`; `engine` imports the compiled engine, `extensions` has the functions
that Kubernetes adds to the language, and `loops` bounds the cost of a rule.
"""
