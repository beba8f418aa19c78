"""The memory service: episodes, pins and recall. It owns `<home>/memory` and nothing else."""
