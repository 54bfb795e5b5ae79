# Every target does its own set-up: a fresh clone needs Python 3.11 or newer and nothing else.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
TORCH  ?= torch==2.13.0
TRITON ?= triton==3.9.0; sys_platform == 'linux'
BROWSER = { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null && command -v chromedriver >/dev/null

.PHONY: demo test test-long test-torch test-dask test-browser test-notebook test-pythons lint supply-chain lock bench experiments docs clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint .ci/constraints.txt --editable ".[dev,plot,bench]" || \
	  { echo "The versions of .ci/constraints.txt do not fit here: installing the newest that do." >&2; \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev,plot,bench]"; }
	touch $@

demo: $(VENV)/.installed        ## train a K-StoNet with intervals on embedded data and show the result
	$(BIN)/python -m kstonet.demo

test: $(VENV)/.installed        ## the default suite, minutes
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

test-long: $(VENV)/.installed   ## slow checks at full size
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto tests/long

test-torch: $(VENV)/.installed  ## every Gram under its contract, those on PyTorch tensors (CPU build) included
	$(BIN)/python -c "import torch, triton" 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)" "$(TRITON)"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/gram tests/test_device_loop.py tests/estimators/test_device.py src/kstonet/gram

test-dask: $(VENV)/.installed   ## training on a Dask cluster of worker processes on this machine
	$(BIN)/python -c "import distributed" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dask]"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/cluster src/kstonet/dask

test-browser: $(VENV)/.installed  ## the report in a headless Chromium, installed where we may; skipped, and said, where there is none
	@$(BROWSER) || test "$$(id -u)" != 0 || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver; } || true
	@if $(BROWSER); then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[browser]" && $(BIN)/python -m pytest tests/browser; \
	else \
	  echo "SKIPPED: no test of the report in a browser, Chromium is missing. As root: apt-get install chromium chromium-driver"; \
	fi

test-notebook: $(VENV)/.installed  ## what a notebook shows, in a real Jupyter kernel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[notebook]"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/notebook

test-pythons: $(VENV)/.installed  ## the wheel on every other Python 3.11 to 3.14 found: installed, and a selection of the tests
	$(BIN)/python tests/pythons.py

lint: $(VENV)/.installed        ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

supply-chain: $(VENV)/.installed  ## licences of all that is installed, and known vulnerabilities where the advisory database answers
	$(BIN)/python .ci/supply_chain.py licences
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint .ci/constraints.txt pip-audit
	$(BIN)/python .ci/supply_chain.py audit

lock: $(VENV)/.installed        ## write the versions of this environment, whose tests pass, to .ci/constraints.txt
	head -1 .ci/constraints.txt > .ci/constraints.new
	$(BIN)/python -m pip freeze --exclude-editable | grep "^[A-Za-z0-9._-]*==" | grep -v "^kstonet==" | sort -f >> .ci/constraints.new
	mv .ci/constraints.new .ci/constraints.txt

bench: $(VENV)/.installed       ## side-by-side timings; set KSTONET_DATA to use the real sets
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check scikit-learn-intelex
	$(BIN)/python benchmarks/svr.py

experiments: $(VENV)/.installed ## the tables in experiments/results/, an hour or more; finished parts are not run again
	$(BIN)/kstonet-experiments run all
	$(BIN)/kstonet-experiments report

docs: $(VENV)/.installed        ## the documentation as pages in docs/_build/html, with the gallery of examples
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
