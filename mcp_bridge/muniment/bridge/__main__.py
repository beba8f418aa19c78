"""Starts the worker: `python -m muniment.bridge`."""

from muniment.bridge.worker import run_worker
from muniment.kit.server import run_process

if __name__ == "__main__":
    run_process("worker", run_worker)
