# make serve    set everything up, then serve your own transcripts (ARGS="--port 0" and the like are passed on)
# make test     set everything up, then run every check and test
# make bench    set everything up, then measure for about five minutes (ARGS="full --size M": all of it, on a larger archive)

SHELL := /bin/sh
ARGS ?=
PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11
VENV := .venv
BIN := $(VENV)/bin

.PHONY: serve test check bench plots lock format clean

serve: $(VENV)/.runtime
	@exec $(BIN)/turndex serve $(ARGS)

test: check $(VENV)/.inspector
	$(BIN)/pytest $(ARGS)

check: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.test
	$(BIN)/python -m bench $(or $(ARGS),all)

plots: $(VENV)/.bench
	$(BIN)/python -m bench plots $(ARGS)

format: $(VENV)/.test
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format

# The environment: made once, brought up to date when a lock or pyproject.toml changes. Each stamp is
# written last, so that what was interrupted is done again.
$(BIN)/python:
	@for python in $(PYTHON); do \
		if $$python -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			$$python -m venv $(VENV) && exit; rm -rf $(VENV); exit 1; \
		fi; \
	done; \
	echo "turndex needs Python 3.11 or newer with its venv module (Debian and Ubuntu: python3-venv);" >&2; \
	echo "none of these is one: $(PYTHON). Name it: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; \
	exit 1

$(VENV)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV)" >&2 # not where a server says its address
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . >&2
	@touch $@

$(VENV)/.test: requirements-test.lock $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-test.lock
	@touch $@

# The reference inspector of MCP needs node. Where that is missing its test is left out, and said so.
$(VENV)/.inspector: tests/inspector/package-lock.json | $(VENV)/.test
	@if ! command -v npm >/dev/null; then \
		echo "without npm the test with the MCP inspector is left out" >&2; \
	elif mkdir -p $(VENV)/inspector && cp tests/inspector/package*.json $(VENV)/inspector \
		&& npm ci --prefix $(VENV)/inspector --ignore-scripts --no-audit --no-fund --silent; then \
		touch $@; \
	else \
		echo "the MCP inspector could not be installed, its test is left out" >&2; \
	fi

# The plots need more than the measurements do.
$(VENV)/.bench: requirements-bench.lock $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@touch $@

# Locks hold names, versions and hashes only. UPGRADE=--upgrade takes the newest versions.
UPGRADE ?=
LOCK := $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host $(UPGRADE)

lock: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-tools
	$(LOCK) --extra build -o requirements.lock pyproject.toml
	$(LOCK) --extra build --extra test -c requirements.lock -o requirements-test.lock pyproject.toml
	$(LOCK) --extra build --extra test --extra bench -c requirements-test.lock -o requirements-bench.lock pyproject.toml

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
