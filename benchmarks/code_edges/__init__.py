"""Resolved call edges of the code graph, held against those of scip-python."""
