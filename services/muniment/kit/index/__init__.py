"""Derived indexes: what a store can rebuild at any time."""
