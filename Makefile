# Commands for a newcomer: `make audit` answers the question on the built-in default, `make audit-hf` of a transformer, and
# `make test` checks the project.
PYTHON ?= python3.11
# The bound keeps the install on the tested build; choose another with `make audit TORCH="torch==2.8.0"`.
TORCH  ?= torch>=2.6,<=2.13.0
VENV   := .venv
BIN    := $(VENV)/bin
# Empty is unset: where bytecode isn't kept, every process of a test run compiles a thousand files anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: audit audit-hf explore test slow cluster data every-cpu check docs pages bench clean

audit: $(VENV)/.audit
	$(BIN)/exegete audit --out runs/audit

# MiniLM, fine-tuned on film reviews for one epoch with its three lowest layers as they are, then audited.
audit-hf: $(VENV)/.audit-hf
	$(BIN)/exegete audit --task rotten_tomatoes --model hf:minilm:head=cls,frozen=3 --out runs/audit-hf

explore: $(VENV)/.explore
	$(BIN)/exegete serve

# All cores, and no core idle at the end; a plain `pytest tests/x.py` stays in one process.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

test: $(VENV)/.dev
	$(PYTEST)

slow: $(VENV)/.dev
	$(PYTEST) -m slow

# One after the other: clusters of two processes on one machine get into each other's way.
cluster: $(VENV)/.dev
	$(BIN)/python -m pytest -n0 -m cluster

data: $(VENV)/.dev
	$(PYTEST) -m data

every-cpu: $(VENV)/.dev
	$(BIN)/python -m tools.every_cpu

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# All of them, also where one is below its bar.
bench: $(VENV)/.dev
	failed=""; for file in start_up explorer rank_correlation training_step leave_one_out integrated_gradients erasure permutations adversaries importance_sets jain_wallace huggingface huggingface_memory waiting estimates memory cluster; do $(BIN)/python benchmarks/$$file.py || failed="$$failed $$file"; done; [ -z "$$failed" ] || { echo "below their bars:$$failed"; exit 1; }

docs: $(VENV)/.dev
	$(BIN)/mkdocs serve

# What pages take from the code, written anew.
pages: $(VENV)/.dev
	$(BIN)/python -m tools.pages

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.torch: | $(BIN)/python
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	touch $@

$(VENV)/.audit: pyproject.toml $(VENV)/.torch
	$(BIN)/python -m pip install --quiet --editable ".[reviews,vectors]"
	touch $@

$(VENV)/.audit-hf: pyproject.toml $(VENV)/.torch
	$(BIN)/python -m pip install --quiet --editable ".[reviews,vectors,hf,minilm]"
	touch $@ $(VENV)/.audit

$(VENV)/.explore: pyproject.toml $(VENV)/.torch
	$(BIN)/python -m pip install --quiet --editable ".[reviews,vectors,explorer]"
	touch $@ $(VENV)/.audit

$(VENV)/.dev: pyproject.toml $(VENV)/.torch
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ $(VENV)/.audit $(VENV)/.audit-hf $(VENV)/.explore

clean:
	rm -rf $(VENV) dist site
