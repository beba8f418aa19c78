"""What the parser says of a project: symbols, who calls whom, outlines, impact."""
