# Every target does its own set-up: a clean checkout needs only Python >= 3.11, pip, a C++ compiler and make.
# Another interpreter: `make test PYTHON=python3.12`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Two workers fit two cores and about 8 GB: a trace of a small model peaks near 1.5 GB.
WORKERS ?= 2
# One intra-op thread a worker, so that the workers do not fight over the cores.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

.PHONY: help setup demo test lint types imports unit sweep bench docs clean
.DEFAULT_GOAL := help

help: ## Say what each target does
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

setup: $(STAMP) ## Create .venv with the tested versions and this package

# torch comes first and by its exact pin: asked for through a range, pip could pick another build or release of it.
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or newer is needed"'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all,dev]"
	@touch $@

demo: $(STAMP) ## Export SmolLM2-135M-Instruct, verify it, let it answer, print what was measured
	$(BIN)/transformers-exporters demo $(DEMO_ARGS)

test: lint unit ## Lint, types, import rules and the whole test suite

lint: $(STAMP) ## ruff, strict mypy and the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/typing/api.py
	$(BIN)/lint-imports --no-logo

unit: $(STAMP)
	$(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# Tiny models of every registered type; other models by SWEEP_ARGS="--zoo DIRECTORY --list FILE". Resumable: a case that
# SWEEP_OUT holds is not run again.
SWEEP_OUT ?= benchmarks/results/coverage.jsonl
SWEEP_FORMATS ?= dynamo,onnx,openvino,executorch
SWEEP_MODES ?= forward
sweep: $(STAMP) ## Every architecture on every backend, and the table in docs/coverage.md (hours; resumable)
	$(TEST_ENV) $(QUIET) $(BIN)/python benchmarks/coverage.py --formats $(SWEEP_FORMATS) --modes $(SWEEP_MODES) \
	  --json $(SWEEP_OUT) -j $(WORKERS) $(SWEEP_ARGS)
	$(BIN)/python benchmarks/coverage.py --render --json $(SWEEP_OUT)

QUIET := TRANSFORMERS_VERBOSITY=error TQDM_DISABLE=1 PYTHONWARNINGS=ignore
bench: $(STAMP) ## Side by side with transformers.exporters: export cost, artifact size, decode speed
	$(QUIET) $(BIN)/python benchmarks/export.py --json benchmarks/results/export.json $(BENCH_ARGS)
	$(QUIET) $(BIN)/python benchmarks/decode.py --json benchmarks/results/decode.json $(BENCH_ARGS)
	$(QUIET) $(BIN)/python benchmarks/decode.py --threads 1 --json benchmarks/results/decode_one_thread.json $(BENCH_ARGS)
	$(BIN)/python benchmarks/report.py benchmarks/results/export.json benchmarks/results/decode.json \
	  benchmarks/results/decode_one_thread.json > docs/benchmarks.md
	$(QUIET) $(BIN)/python benchmarks/quantization.py $(BENCH_ARGS)
	$(BIN)/python benchmarks/quantization.py --render

docs: $(STAMP) ## Run every code block of the guides and the README
	$(TEST_ENV) $(BIN)/python -m pytest tests/docs $(PYTEST_ARGS)

clean: ## Remove what the other targets made
	rm -rf $(VENV) build .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
