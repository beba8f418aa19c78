"""The tests: unit (mirrors the source), integration (real processes) and faults."""
