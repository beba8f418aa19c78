"""What a file is for is told by its path."""

from __future__ import annotations

import pytest

from muniment.code.roles import Role, is_test, role_of


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("src/app.py", Role.SOURCE),
        ("django/test/client.py", Role.SOURCE),
        ("django/db/migrations/state.py", Role.SOURCE),
        ("src/build/mod.rs", Role.SOURCE),
        ("src/testing.rs", Role.SOURCE),
        ("latest/contest.py", Role.SOURCE),
        ("src/attest.ts", Role.SOURCE),
        ("pkg/tools/main.go", Role.SOURCE),
        ("tests/unit/app.py", Role.TEST),
        ("app/tests.py", Role.TEST),
        ("app/test_models.py", Role.TEST),
        ("app/conftest.py", Role.TEST),
        ("test/main.py", Role.TEST),
        ("packages/one/test/all.ts", Role.TEST),
        ("src/a.test.tsx", Role.TEST),
        ("pkg/server_test.go", Role.TEST),
        ("src/test/java/A.java", Role.TEST),
        ("src/main/java/ATest.java", Role.TEST),
        ("lib/a_spec.rb", Role.TEST),
        ("app/migrations/0001_initial.py", Role.MIGRATION),
        ("db/migrate/20240101_add.rb", Role.MIGRATION),
        ("v1/code_pb2.py", Role.GENERATED),
        ("web/app.min.js", Role.GENERATED),
        ("dist/index.js", Role.GENERATED),
        ("pip/_vendor/six.py", Role.VENDORED),
        ("web/node_modules/a/index.js", Role.VENDORED),
        ("docs/conf.py", Role.ASIDE),
        ("examples/one/main.go", Role.ASIDE),
        ("scripts/build.py", Role.ASIDE),
    ],
)
def test_roles(path: str, role: Role) -> None:
    assert role_of(path) is role
    assert is_test(path) is (role is Role.TEST)
