"""Limits of records, quoted by the errors that they cause and by the documentation."""

BODY_LIMIT_BYTES = 1024 * 1024
"""Longest value: a body, a reference's text, an event's part; of the JSON text where it is JSON."""

BODY_LIMIT_DEPTH = 500
"""How deep a body may be nested."""

IDENTIFIER_LIMIT_CHARACTERS = 1024
"""Longest category, name, key or tenant."""

LIST_DEFAULT_RECORDS = 50
LIST_LIMIT_RECORDS = 200

LIST_PAGE_BYTES = 1024 * 1024
"""What a page of a listing, or a message of changes, holds; a longer record goes alone."""

SEARCH_DEFAULT_HITS = 10
SEARCH_LIMIT_HITS = 50

EXPORT_PAGE_RECORDS = 100
"""Records in one message of an export."""

EXPORT_PAGE_BYTES = 1024 * 1024
"""What an export puts into one message; a longer record goes alone."""

IMPORT_BATCH_RECORDS = 100
"""Records that an import writes together."""

IMPORT_KEPT_LISTED = 1000
"""Differing records of one import that are named; more are only counted."""

CHANGES_PAGE = 200
"""Changes in one message."""
