"""What the MCP conformance suite needs besides the product, and what is expected of it."""
