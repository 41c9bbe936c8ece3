# Everything runs from .venv, which `make install` fills; only Python 3.11+ and Java 17 or 21 have to be there.
SHELL := /bin/bash
PYTHON ?= python3
SIZE ?= 100mb
PYTEST_ARGS ?=
BIN := .venv/bin
INSTALLED := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-large lint format bench clean

##@ Use
help: ## Show this
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Set up .venv with everything that the other targets need

demo: $(INSTALLED) ## Run the whole job on a local stand-in for AWS (SIZE=100mb, or SIZE=1gb)
	@$(BIN)/compactor demo --size $(SIZE)

##@ Work on it
test: $(INSTALLED) ## Run the tests (PYTEST_ARGS="-k ledger")
	@$(BIN)/python -m compactor.java
	@$(BIN)/pytest $(PYTEST_ARGS)

test-large: $(INSTALLED) ## Run the tests that take minutes and gigabytes
	@$(BIN)/pytest -m large -s $(PYTEST_ARGS)

lint: $(INSTALLED) ## Check format, style and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(INSTALLED) ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(INSTALLED) ## Measure against the classic way, DuckDB and Polars (BENCH_ARGS="--size 1gb --passes 3")
	@$(BIN)/python -m bench $(BENCH_ARGS)

clean: ## Remove what the other targets made
	rm -rf .venv .bench .demo build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(INSTALLED): pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "Python 3.11 or later is needed: set PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -c 'exec(open("compactor/java.py").read())'
	@echo "Installing into .venv ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@$(BIN)/python -m compactor.adapters.spark.s3a_jars
	@touch $@
