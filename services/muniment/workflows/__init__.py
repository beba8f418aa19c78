"""What needs services in order, for the bridge and the command line alike.

A workflow is one short coroutine that reads like the sentence that describes it.
"""
