"""Programs in Go of the kind that sites write, against both homes."""
