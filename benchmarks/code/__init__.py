"""The code index, measured on real trees beside what else reads code."""
