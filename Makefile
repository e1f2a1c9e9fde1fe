# The two doors for newcomers are `make demo` and `make test`; both build a virtual environment first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: check demo fix install test test-ray test-slow

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: install
	$(BIN)/demur audit example --out audit-example --overwrite

check: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/validate-pyproject pyproject.toml
	$(BIN)/codespell src tests taxonomy benchmarks docs README.md CHANGELOG.md

test: check
	$(BIN)/python -m pytest --numprocesses auto --quiet

# Apart from `test`: it takes more than ten seconds, and needs the labelled data that may lie beside the checkout.
test-slow: install
	$(BIN)/python -m pytest --slow -m slow --numprocesses 0 --quiet

# Apart from `test`: Ray starts half a dozen processes, and gives up on a machine that is busy with other tests.
test-ray: install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,ray]'
	$(BIN)/python -m pytest --numprocesses 0 --quiet tests/studies/test_cluster.py

fix: install
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
