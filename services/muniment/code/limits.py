"""Limits of the code service, quoted by the errors that they cause and by the documentation."""

SIGNATURE_LIMIT_CHARACTERS = 400
"""Longest signature of a symbol; of a constant or a field a fraction of it."""

DOC_LIMIT_CHARACTERS = 200
"""Longest first line of a symbol's documentation."""

CHAIN_LIMIT_CHARACTERS = 200
"""Longest chain of names; of a longer one the end is kept."""

FILE_SYMBOLS_LIMIT = 20_000
"""Symbols that are read of one file."""

DATA_SYMBOLS_LIMIT = 500
"""Keys, headings and the like that are read of one file of data or text."""

FILE_MENTIONS_LIMIT = 200_000
"""Calls and other uses of names that are read of one file."""

NESTING_LIMIT = 64
"""Symbols within one another; deeper ones are left out."""

TREE_LIMIT_FILES = 200_000
"""Most files of a tree that are indexed; what comes after them by name is left out."""

TREES_IN_MEMORY = 4
"""Most trees whose graph is held; the one that was asked for longest ago is let go first."""

WATCH_LIMIT_FOLDERS = 20_000
"""Most folders of a tree that is watched; a larger one is compared with the disk by each query."""

WATCH_SECONDS = 1800
"""How long a tree is watched that nobody asks for."""

BINARY_PROBE_BYTES = 8 * 1024
"""A file with a zero byte among its first so many is none that is read."""

FILE_LIMIT_CPU_SECONDS = 10
"""What a parser may take for one file."""

PARSER_LIMIT_BYTES = 2 * 1024**3
"""Address space of a parser process."""

COMPARE_LIMIT_FILES = 5_000
"""Most files of a watched tree that a query compares with the disk before it answers."""

REREAD_LIMIT_FILES = 256
"""Most files that a query reads again itself; where more changed, the whole tree is looked at."""

IMPACT_LIMIT = 500
"""Most dependents in one answer; the others are counted."""

IMPACT_DEPTH_LIMIT = 16
"""Deepest that dependents are followed."""

DEFINITIONS_LIMIT = 100
"""Most definitions of a name in one answer."""

FOCUS_LIMIT = 100
"""Most focus paths of a map."""

BUDGET_LIMIT_TOKENS = 200_000
"""Largest budget of a map."""

MEANINGS_LIMIT = 8
"""Definitions that a name may mean; of more none is told."""

CHAIN_PARTS_LIMIT = 16
"""Names in a chain that are followed; a longer one is known by its last name."""
