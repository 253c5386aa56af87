"""The BMCSecret controller: moves stringData into data, and reports whether the credentials are complete.

May import `controllers.shared` and the layers below, no other controller. Start reading in `reconciler`.
"""
