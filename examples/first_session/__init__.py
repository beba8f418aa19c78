"""A first session with Muniment, played over MCP: what `make run` shows.

`session.jsonl` says what happens, `repository/` is what it is about, `play.py` plays it. Everything
goes through the doors that a user has: the bridge `muniment-mcp` and the command `muniment`.
"""
