"""The tests of chandler."""
