"""MCP to gRPC: the front, which a harness spawns, and the worker, which runs the tools."""
