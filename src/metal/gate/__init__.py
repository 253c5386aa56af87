"""What a machine meets first: its boot window, refusals, and the HTTP surface. Boot and registry share it."""
