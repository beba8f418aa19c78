"""Limits of the memory service, quoted by the errors that they cause and by the documentation."""

EPISODE_LIMIT_BYTES = 16 * 1024 * 1024
"""Longest content of an episode."""

PIN_LIMIT_BYTES = 32 * 1024
"""Longest text of a pin."""

QUERY_LIMIT_BYTES = 64 * 1024
"""Longest query of a recall."""

RECALL_DEFAULT_HITS = 8
RECALL_LIMIT_HITS = 100

HIT_TEXT_LIMIT_BYTES = 24 * 1024
"""Longest text of a hit; more is cut to the part around the best match."""

RECALL_TEXT_LIMIT_BYTES = 96 * 1024
"""All texts of one answer together."""

PATHS_LIMIT = 100
"""Paths that are kept of one episode."""

LIST_PAGE_EPISODES = 500
"""Episodes in one message of a listing."""

ROOTS_LIMIT = 20
"""Roots that are remembered of one project."""
