"""CustomResourceDefinitions: the kind, the resources that it defines, and its validation.

It imports kinds, printing, schema, cel and machinery. Start reading in `crds`; `validation` checks a CRD,
`schema_validation` its structural schemas, and `rule_validation` its CEL rules.
"""
