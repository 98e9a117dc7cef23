# Targets for people; .ci/run calls `make dev test`, the README's command.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := build/bench
LOG ?= tests/logs/mla-serde-start-failed.log

.PHONY: dev demo check test test-system bench bench-check bench-install docs docs-check cards catalog clean

dev: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[zstd]" --group dev
	touch $@

demo: dev  ## diagnose a log that is shipped with the project
	$(BIN)/lmdiag scan --exit-zero $(LOG)

check: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check lmdiag
	$(BIN)/mypy

test: dev
	$(BIN)/python -m pytest

test-system: dev  ## what needs root, a real systemd, podman, logrotate, Prometheus, or a vLLM (LMDIAG_VLLM, LMDIAG_MODEL)
	$(BIN)/python -m pytest -m system tests/system

# An environment of its own: with the editable install of `make dev`, every start of Python takes twice as long.
$(BENCH)/bin/python:
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --upgrade "pip>=25.1"

bench-install: $(BENCH)/bin/python
	rm -rf build/lib
	$(BENCH)/bin/python -m pip install --quiet ".[zstd]" --group bench
	$(BENCH)/bin/python -m pip install --quiet --force-reinstall --no-deps .

bench: bench-install  ## measure against the other programs that are installed, and write docs/performance.md; 12 GB of disk
	$(BENCH)/bin/python -m benchmarks.compare
	$(BENCH)/bin/python -m benchmarks.catalog
	$(BENCH)/bin/python -m benchmarks.watch

bench-check: bench-install  ## the quick comparisons, against their ceilings in benchmarks/ceilings.json
	$(BENCH)/bin/python -m benchmarks.compare --ci

cards: dev  ## rebuild the index of the cards after one has changed
	$(BIN)/python -m lmdiag.match.pack rules

catalog: dev  ## add the releases that are not in the catalogue yet; through pip's index
	$(BIN)/lmdiag catalog build vllm lmcache --into rules/catalog

docs: dev  ## rebuild what is made from the code: the JSON Schema, the examples of payloads, the README's picture, the cards as a site in build/site
	$(BIN)/python -m lmdiag.report.schema > docs/incident.schema.json
	$(BIN)/python -m docs.picture $(LOG) > docs/scan.svg
	PYTHONPATH=.:tests $(BIN)/python tests/payload_examples.py
	rm -rf build/site-source build/site
	$(BIN)/python -m docs.site build/site-source
	$(BIN)/python -m sphinx -q -W -b html build/site-source build/site

docs-check: dev  ## look at the site in headless Chromium, which must be installed
	$(BIN)/python -m pip install --quiet --group browser
	$(BIN)/python -m pytest tests/test_docs_site.py

clean:
	rm -rf $(VENV) build dist *.egg-info
