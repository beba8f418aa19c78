"""Whether impact names what really changed together, asked of real histories."""
