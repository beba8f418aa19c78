"""The counter of tokens: how it is trained, and how far off it is."""
