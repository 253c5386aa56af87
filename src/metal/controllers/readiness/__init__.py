"""The two controllers of ServerReadinessRules: one taints Servers, one validates rules and removes their taints.

`rules` decides which taints a Server gets (pure functions), `watches` says which changes cause a pass. May import
`controllers.shared` and the layers below, no other controller. Start reading in `rules`.
"""
