"""Limits that both sides of a call keep to."""

MESSAGE_LIMIT_BYTES = 4 * 1024 * 1024
"""Longest gRPC message; longer contents travel in chunks."""

CHUNK_BYTES = 1024 * 1024
"""Longest chunk of a content, and longest content that travels in one message."""
