# demo and test do all their own set-up; the others share test's environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
MODELS ?= 240

.PHONY: browser docs demo test check format bench torture venv clean

demo: $(VENV)/.core  ## condense a real benchmark and estimate models it has never met
	$(BIN)/disco demo --out disco-demo --models $(MODELS)

# one thread each: two processes of two threads would be in each other's way
test: check browser  ## lint, types, tests, and the README's code
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(VENV)/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file= --cache-dir=.mypy_cache/benchmarks --check-untyped-defs --ignore-missing-imports \
		--follow-imports=silent benchmarks

browser:  # the reports' tests open them in Chromium
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } || { \
		echo "The tests of reports need Chromium or Google Chrome; install one and run make test again" >&2; exit 1; }

docs: $(VENV)/.all  ## the documentation site, in site/
	$(BIN)/python examples docs/gallery
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

format: $(VENV)/.all
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.all  ## speed and memory, each beside its floor or peer
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/table1.py

torture: $(VENV)/.all  ## 10,000 changed files for every reader, and 20 kills of every long command
	$(BIN)/python -m tests.fuzz
	$(BIN)/python -m tests.faults

venv: $(VENV)/.all

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed; call make with PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable .
	touch $@

$(VENV)/.all: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) disco-demo site docs/gallery
