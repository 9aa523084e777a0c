# `make` alone says what there is. Everything happens in .venv; nothing outside this folder is changed, except
# that a missing browser or Python is installed with apt-get where that needs no password.

PYTHON ?=
WORKERS ?= 2
UPGRADE ?=
PY := .venv/bin/python
INSTALLED := .venv/.installed

export PYTHON

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench lock clean

help: ## say what there is
	@echo "pageslots: make <target>"
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' Makefile
	@echo "Settings: PYTHON=/path/to/python3.12   WORKERS=2 (tests at a time)   UPGRADE=1 (for lock)"

setup: $(INSTALLED) ## make .venv and see to a browser
	@scripts/browser.sh

demo: setup ## serve a small shop on this machine and crawl it
	@$(PY) -m pageslots.cli demo

test: lint setup ## everything that must hold: lint, then all tests but the benchmarks
	$(PY) -m pytest -m "not bench" -n $(WORKERS) --dist loadfile

lint: $(INSTALLED) ## style, types, and which part may import which
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

format: $(INSTALLED) ## put the code into the house form
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

bench: setup ## measure, and print each figure beside its goal
	$(PY) -m tests.bench --json bench.json

lock: $(INSTALLED) ## write constraints.txt anew from pyproject.toml (UPGRADE=1: the newest of everything)
	@$(PY) -m uv --version >/dev/null 2>&1 || $(PY) -m pip --disable-pip-version-check --quiet install uv
	$(PY) -m uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet \
		$(if $(UPGRADE),--upgrade) --output-file constraints.txt

clean: ## remove .venv, caches, and the results of `make demo`
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist pageslots-demo
	find operator slot_image tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): constraints.txt pyproject.toml scripts/venv.sh scripts/system.sh
	@scripts/venv.sh
	@touch $@
