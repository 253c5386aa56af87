"""Evidence of sanitization: reads reports of an erasure, decides whether all drives are erased, signs the result.

What it proves: the probe of one particular boot reported these results in band, and the manager judged them and signed
the record. It does not prove that a drive's firmware reported the truth. It imports `machine`, `api` and `kube`.
Start reading in `verdict` (the decision), `record` (how it is kept), `signing` and `chain`.
"""
