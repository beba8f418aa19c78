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

EXPORT_PAGE_BYTES = 1024 * 1024
"""What an export reads at one moment of the store; a longer episode is read alone."""

EXPORT_PAGE_EPISODES = 2000
"""Episodes, and places of purged ones, that an export looks at in one moment of the store."""

IMPORT_LINE_LIMIT_BYTES = 6 * EPISODE_LIMIT_BYTES + 1024 * 1024
"""Longest line of an import: JSON may spell each byte of a content with six."""

IMPORT_BATCH_LINES = 100
"""Lines that an import writes together."""

IMPORT_BATCH_BYTES = 4 * 1024 * 1024
"""Size of the lines that an import writes together; a longer line is written alone."""

IMPORT_REMARKS_LIMIT = 1000
"""Lines of one import that are remarked on; more are only counted."""

PURGE_BATCH_EPISODES = 100
"""Episodes that a purge takes away together."""

PURGE_BATCH_ROWS = 1000
"""Kept outcomes, and changes of the feed, that a purge looks through together."""

RECOUNT_BATCH_TEXTS = 512
"""Texts that are counted by the serving model's tokenizer in one call."""

RECOUNT_BATCH_BYTES = 2 * 1024 * 1024
"""Size of the texts of one such call; a longer text is counted alone."""

RECOUNT_LIMIT_BYTES = 3 * 1024 * 1024
"""Longest text that is counted so; a longer one stays estimated."""
