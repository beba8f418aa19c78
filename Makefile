# Everything here works in a fresh clone: each target that needs tools sets them up first.
PY := .venv/bin/python

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup:  ## Make .venv from requirements.lock; quick when nothing changed
	@scripts/setup

run: setup  ## Play the first session of examples/ against a home of its own
	@$(PY) examples/first_session/play.py

test: setup  ## Run the unit tests, integration and fault tests, two files at a time
	@.venv/bin/pytest -n 2 --dist loadfile

TRANSCRIPTS ?= ../shared/data/records-transcripts

test-contract: setup  ## Replay recorded conversations with the vault reference's program
	@MUNIMENT_TEST_TRANSCRIPTS=$(abspath $(TRANSCRIPTS)) .venv/bin/pytest tests/contract

test-code: setup  ## Follow 200 random sequences of edits with the code index, as CI does 20
	@MUNIMENT_TEST_EDITS=200 .venv/bin/pytest tests/faults/test_code_edits.py

test-orphans: setup  ## End harnesses 50 times with commits under way, as CI does 12 times
	@MUNIMENT_TEST_ORPHANS=50 .venv/bin/pytest tests/faults/test_orphans.py

test-hosts: setup  ## Drive Claude Code, Codex and OpenCode from npm (1.4 GB), with a scripted model
	@.venv/bin/pytest tests/hosts

test-models: setup  ## Save and restore with real models from packages (350 MB); minutes, not in CI
	@.venv/bin/pytest tests/models

test-kills: setup  ## Kill a store's process 200 times at random, as CI does 20 times
	@MUNIMENT_TEST_KILLS=200 MUNIMENT_TEST_EXAMPLES=300 MUNIMENT_TEST_SEEDS=2000 \
		.venv/bin/pytest tests/faults/test_kill_store.py tests/faults/test_store_machine.py \
		tests/faults/test_simulation.py --timeout 3600

lint: setup  ## Check style, types, layers and contracts
	.venv/bin/ruff check . && .venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo
	scripts/lint-protos

draw: setup  ## Draw who calls whom, from the code
	@$(PY) -m tests.unit.house.layers

bench-store: setup  ## Measure commits and recall; a few minutes, or hours with FULL=--full
	@$(PY) -m benchmarks.store $(FULL)

bench-front: setup  ## Measure how soon a harness has its first answers
	@$(PY) -m benchmarks.front

bench-restart: setup  ## Measure a restart with 100,000 sealed episodes
	@$(PY) -m benchmarks.restart --plain

bench-records: setup  ## Measure records beside the predecessor's; minutes, or hours with FULL=--full
	@$(PY) -m benchmarks.records $(FULL)

bench-typed-search: setup  ## Score the verdicts of typed search on labelled questions, beside the predecessor's
	@$(PY) -m benchmarks.typed_search

bench-slots: setup  ## Measure counting by the served model, and what restoring a slot spares
	@$(PY) -m benchmarks.slots

bench-code: setup  ## Measure the code index on real trees, beside others; fetches some 800 MB
	@$(PY) -m benchmarks.code

bench-impact: setup  ## Score the impact of changes on what changed together in real histories
	@$(PY) -m benchmarks.impact

bench-counting: setup  ## Measure estimates of tokens beside real tokenizers; fetches some 250 MB
	@$(PY) -m benchmarks.counting

bench-edges: setup  ## Hold resolved call edges of Python packages against scip-python's, from npm
	@$(PY) -m benchmarks.code_edges

protos: setup  ## Regenerate the Python beside the contracts
	scripts/generate-protos protos

manifest: setup  ## Regenerate the bridge's manifest
	$(PY) -m muniment.bridge.build_manifest

lock: setup  ## Re-make requirements.lock; newer versions with UPGRADE=--upgrade
	scripts/lock $(UPGRADE)

clean:  ## Remove what the other targets made
	rm -rf .venv node_modules build dist .*_cache .hypothesis

.PHONY: help setup run test test-code test-contract test-orphans test-hosts test-models test-kills lint draw \
	bench-store bench-front bench-restart bench-records bench-typed-search bench-slots bench-code bench-impact bench-counting bench-edges protos manifest lock clean
