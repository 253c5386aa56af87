"""What the other layers share and what needs no API: objects, conditions, patches, selectors, permissions, clocks."""
