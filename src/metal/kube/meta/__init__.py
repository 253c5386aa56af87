"""What the other layers share and what needs no API: objects, conditions, patches, selectors, permissions, clocks.

Imports nothing of ours. Start reading in `objects`: what every kind has in common, and how it is named.
"""
