"""The catalogue's entries, a module per group of tools."""
