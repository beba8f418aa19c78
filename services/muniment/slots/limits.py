"""Limits of the slots service, as callers are told them."""

COUNT_LIMIT_TEXTS = 4096
"""Most texts in one request for counts."""

COUNT_LIMIT_BYTES = 3 * 1024 * 1024
"""Most bytes that these texts have together."""

TOKEN_CACHE_TEXTS = 200_000
"""Most texts whose counts are remembered."""

CHAIN_BLOCK_TOKENS = 64
"""Tokens in a block of a chain."""

MESSAGES_LIMIT_BYTES = 3 * 1024 * 1024
"""Longest conversation that is given to a chat template, as JSON."""

WORTH_KEPT = 16
"""Most measures of what a restore was worth that are kept of a server or a snapshot."""
