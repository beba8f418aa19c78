"""What a file is for, as its path says: the program, its tests, or what others wrote or made."""

from __future__ import annotations

import re
from enum import IntEnum

__all__ = ["Role", "is_test", "role_of"]


class Role(IntEnum):
    """What a file is for."""

    SOURCE = 0
    TEST = 1
    MIGRATION = 2
    GENERATED = 3
    """Made by a program, also where it is committed: nobody edits it."""
    VENDORED = 4
    """Others' code that was copied here."""
    ASIDE = 5
    """Examples, benchmarks, scripts and the sources of documentation."""


_ROLES = re.compile(
    r"""
    (?P<VENDORED> (?:^|/) (?:_?vendor(?:ed)?|node_modules|third[_-]?party|bower_components) / )
    | (?P<GENERATED>
        ^ (?:dist|build|out|target) / | (?:^|/) (?:generated|__generated__) /
        | _pb2(?:_grpc)?\.pyi?$ | \.pb\.(?:go|cc|h)$ | [.\-_]min\.(?:js|css)$
        | [._]generated\.\w+$ | \.g\.\w+$ | \.bundle\.js$ )
    | (?P<TEST>
        (?:^|/) (?:tests|__tests__|specs?|testdata|fixtures|__mocks__|e2e) /
        | ^test/ | (?:^|/) src/test/ | (?:^|/) test/ .* \.[jt]sx?$
        | (?:^|/) (?:test_[^/]*|[^/]*_test|conftest|tests) \.[^/.]+$
        | [^/] (?:\.(?:test|spec)\.\w+|_spec\.rb|Tests?\.(?:java|kt|cs|php|swift|scala))$ )
    | (?P<MIGRATION> (?:^|/) (?:migrations?|migrate) / (?:.*/)? [Vv]?\d[^/]*$ )
    | (?P<ASIDE>
        ^ (?:scripts|tools) /
        | (?:^|/) (?:examples?|samples?|demos?|docs?|bench(?:mark(?:s|ing)?)?) / )
    """,
    re.VERBOSE,
)
"""A folder `test` is not always one of tests: Python packages keep there what helps others test."""


def role_of(path: str) -> Role:
    """What the file of this path, relative to the tree's root, is for."""
    found = _ROLES.search(path)
    if found is None or found.lastgroup is None:
        return Role.SOURCE
    return Role[found.lastgroup]


def is_test(path: str) -> bool:
    """Whether the file tests the program."""
    return role_of(path) is Role.TEST
