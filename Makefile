# `make`       sets up and runs the main job: two cut curves into results/.
# `make test`  sets up, then style, types and tests.
# All commands run inside .venv, which is made from requirements.lock.

PYTHONS ?= python3.13 python3.12 python3.11 python3
PYTHON  ?=
PY      := .venv/bin/python
# More arguments for pytest: make unit PYTEST="-k gemm".
PYTEST  ?=
# Tests run on all cores, at most four: each worker compiles the kernels for itself.
WORKERS ?= -n auto --maxprocesses 4 --dist worksteal

# The main job: SPAD's two curves, prefill against memory bandwidth and decode
# against cores, under both blocks, with the paper and LLMCompass drawn beside.
CUTS    := .venv/bin/chipsim cuts --chip spad-h100 --model bloom-176b --tp 8 --layers-only \
	--execution llmcompass-tables --execution spad-figures
PREFILL := --phase prefill --batch 2 --prompt 1024 --resource memory_bandwidth \
	--values "1000 GB/s, 1250 GB/s, 1500 GB/s, 2000 GB/s, 2500 GB/s, 3000 GB/s, \
	3352 GB/s, 4000 GB/s"
DECODE  := --phase decode --batch 64 --context 1024 --resource cores \
	--values "44, 55, 66, 88, 108, 120, 132, 144, 160"

.DEFAULT_GOAL := cuts
.PHONY: cuts figures page setup test lint types unit slow bench format lock dist clean help

cuts: setup ## run the main job (the default)
	@mkdir -p results
	$(CUTS) $(PREFILL) --out results/prefill-bandwidth.html
	$(CUTS) $(DECODE) --out results/decode-cores.html

figures: setup ## draw the pictures of the documents again (needs Chromium)
	$(CUTS) $(PREFILL) --out docs/figures/prefill-bandwidth.png
	$(CUTS) $(DECODE) --out docs/figures/decode-cores.png
	.venv/bin/chipsim validate silicon --out docs/figures/silicon.png

page: setup ## write docs/validation.md again
	.venv/bin/chipsim validate all --out docs/validation.md

test: lint types unit ## style, types, contracts and tests

lint: setup ## style
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: setup ## mypy --strict
	$(PY) -m mypy

unit: setup ## contracts and tests
	$(PY) -m pytest $(WORKERS) $(PYTEST)

slow: setup ## the tests that take long
	$(PY) -m pytest -m slow $(WORKERS) $(PYTEST)

bench: setup ## measure the speed figures
	$(PY) -m benchmarks

format: setup ## rewrite the sources in the one style
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

dist: setup ## build the wheel and the source archive into dist/
	$(PY) -m build --no-isolation --outdir dist

# ------------------------------------------------------------------ set-up

setup: .venv/.chipsim ## make .venv from the lock and put chipsim into it

.venv/.chipsim: pyproject.toml .venv/.lock
	@$(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# --no-compile halves the time: most modules are never imported.
.venv/.lock: requirements.lock .venv/.python
	@echo "installing the locked dependencies into .venv"
	@$(PY) -m pip install --quiet --no-compile --require-hashes --requirement requirements.lock
	@touch $@

# The first interpreter that runs, is in range and can make environments. Each is
# tried by running it: a version manager's stand-in exists and yet fails.
.venv/.python:
	@for python in $(or $(PYTHON),$(PYTHONS)); do \
		"$$python" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
			>/dev/null 2>&1 || continue; \
		echo "making .venv with $$python"; \
		"$$python" -m venv --clear .venv && touch $@; exit; \
	done; \
	echo "chipsim needs Python 3.11, 3.12 or 3.13 with its venv module; none of '$(or $(PYTHON),$(PYTHONS))' is one: make PYTHON=/path/to/python" >&2; \
	exit 1

# One file for every Python and system that is supported, so each package has one
# version everywhere; no address is written into it.
lock: .venv/.python ## write requirements.lock again
	$(PY) -m pip install --quiet uv
	$(PY) -m uv pip compile pyproject.toml --group dev --all-extras --upgrade \
		--universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
		--no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" --quiet --output-file requirements.lock

clean: ## remove what was made, .venv included
	rm -rf .venv build dist results *.egg-info
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .numba_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1 \2/p' Makefile | while read -r name what; do \
		printf '%-8s %s\n' "$$name" "$$what"; done
