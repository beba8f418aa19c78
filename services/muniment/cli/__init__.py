"""The `muniment` command: for people at a terminal, and with `--json` for programs.

It starts and watches the services of a home, and reaches their data through the workflows. It
knows no service's inside and nothing of the bridge.
"""
