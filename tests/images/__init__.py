"""The image builder, without building an image."""
