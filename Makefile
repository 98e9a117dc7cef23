# Targets for people; .ci/run calls `make dev test`, the README's command.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOG ?= tests/logs/mla-serde-start-failed.log

.PHONY: dev demo check test test-system bench docs docs-check cards catalog clean

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

bench: dev
	$(BIN)/python -m benchmarks.scan
	$(BIN)/python -m benchmarks.catalog
	$(BIN)/python -m benchmarks.watch

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
