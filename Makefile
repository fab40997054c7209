# The few commands of the project; README, pre-commit and CI call the same ones.
VENV := .venv
PYTHON := $(VENV)/bin/python
export HF_HUB_OFFLINE = 1
export TRANSFORMERS_OFFLINE = 1
export DO_NOT_TRACK = 1
export DAGSTER_DISABLE_TELEMETRY = 1

.PHONY: run setup test check docs test-slow bench-parsing bench-orchestration bench-bundles faults

run: setup  ## Start everything and ingest the example library (or LIBRARY=/some/folder)
	@$(VENV)/bin/stemma up --tour $(if $(LIBRARY),--library "$(LIBRARY)",)

setup: $(VENV)/installed  ## Make the virtual environment and install the pinned dependencies

$(VENV)/installed: pyproject.toml constraints.txt
	python3.11 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch==2.13.0 --editable '.[dev]'
	@touch $@

test: setup  ## Lint, type-check and run the default test suite; installs Chromium (Debian package) where it is missing
	@sh tests/install_chromium.sh
	@$(MAKE) --no-print-directory check
	$(VENV)/bin/pytest -m "not slow" --numprocesses 2 --dist loadfile --no-loadscope-reorder

check: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports --no-cache
	$(VENV)/bin/pyright

test-slow: setup  ## The long property, fault and load tests
	$(VENV)/bin/pytest -m slow

bench-parsing: setup  ## PDF readers side by side (or PDFS="folder file.pdf")
	$(PYTHON) -m evals.bench.parsing $(PDFS)

bench-orchestration: setup  ## Dagster and the stores at 10,000 documents (or BENCH="--documents 1000 --parts batches")
	$(PYTHON) -m evals.bench.orchestration $(BENCH)

bench-bundles: setup  ## Export and restore beside pg_dump and pg_restore (or CHUNKS=20000)
	$(PYTHON) -m evals.bench.bundles $(CHUNKS)

faults: setup  ## Operations, kills and refusals from SEEDS=200 seeds on; prints what was survived
	@PYTHONPATH=tests/faults:tests:. $(PYTHON) tests/faults/run_seeds.py --seeds $(or $(SEEDS),200)

docs: setup  ## Rewrite the generated reference pages
	$(PYTHON) -m docs.generate
