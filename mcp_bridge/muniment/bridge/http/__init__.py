"""The bridge over Streamable HTTP: for harnesses that share one server, or run in a container."""
