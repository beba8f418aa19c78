"""Commits and recall: the store, the lexical index and the memory service."""
