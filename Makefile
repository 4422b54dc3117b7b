# Two commands: make demo, make test. `make help` lists the others.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
MINUTES ?= 60
# Several processes of tests, of which most wait now and then; the slowest tests are listed at the end.
PARALLEL := --no-loadscope-reorder --durations=20 --durations-min=1

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-netem test-all test-tools test-peers explore lint format types imports coverage docs reference engine constraints clean

help: ## list what can be made
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt scripts/venv
	@scripts/venv $(PYTHON) $(VENV)

demo: $(STAMP) ## run the demo landslide and show delays, hops and overhead
	@$(BIN)/testbed run topologies/demo.yaml

test: $(STAMP) lint types imports ## all checks, and the tests but for those below
	$(BIN)/python -m analysis.spark.training --foreground
	$(BIN)/python -m pytest -m "not long and not machine and not peers" -n 4 $(PARALLEL)

test-long: $(STAMP) ## the tests that take long: whole labs, faults at every step, papers, README, benchmarks, netem
	$(BIN)/python -m pytest -m "(long or machine) and not peers" -n 3 $(PARALLEL)

test-netem: $(STAMP) ## only the tests of links on a kernel that has netem, in a virtual machine
	$(BIN)/python -m pytest -m machine

test-all: export TESTS_RAN := $(CURDIR)/$(VENV)/tests-ran
test-all: $(STAMP) ## both, and a check that tests of every backend, emulator and platform ran
	rm -f $(TESTS_RAN)
	$(MAKE) test
	$(MAKE) test-long
	$(BIN)/python scripts/tests-ran $(TESTS_RAN)

test-tools: ## install what the tests need: engine, tshark, Chromium, qemu, ... (Debian/Ubuntu, root)
	scripts/test-tools

explore: $(STAMP) ## new examples for the property tests, for MINUTES=60: what to run overnight
	$(BIN)/python scripts/explore --minutes $(MINUTES)

test-peers: $(STAMP) ## the tests that need programs of others (mosquitto, and pip install -e '.[benchmarks]')
	$(BIN)/python -m pytest -m peers

lint: $(STAMP) ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP) ## put the style right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP) ## mypy --strict
	$(BIN)/mypy

imports: $(STAMP) ## the architecture's rules
	$(BIN)/lint-imports

coverage: $(STAMP) ## tests with line and branch coverage
	$(BIN)/python -m pytest --cov --cov-report=term --cov-report=html

reference: $(STAMP) ## renew the pages of docs/reference that follow from the code
	$(BIN)/python -m scripts.reference

docs: $(STAMP) ## build the documentation's site into site/ (open site/index.html)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

engine: ## install and start a Docker engine (Debian/Ubuntu, root)
	scripts/engine start

constraints: ## renew constraints.txt with today's versions
	rm -rf $(VENV)/fresh && $(PYTHON) -m venv $(VENV)/fresh
	$(VENV)/fresh/bin/python -m pip install --quiet '.[dev]'
	{ sed -n 1p constraints.txt; $(VENV)/fresh/bin/python -m pip freeze --exclude landslide-testbed | grep '==' | sort -f; } > $(VENV)/constraints.new
	mv $(VENV)/constraints.new constraints.txt && rm -rf $(VENV)/fresh

clean: ## remove what was built (not captures/)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist site *.egg-info htmlcov .coverage*
