# Thin on purpose: every target calls a script that can be run alone.
# ARGS goes on to what the target runs, for example: make test ARGS="-k version"
SHELL := /bin/bash
ARGS ?=
SHARD ?=

.DEFAULT_GOAL := help
.PHONY: help install build lambda lint check test test-full demo bench clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: ## .venv with everything in it (.venv/bin/hpj, .venv/bin/jupyter lab); quick when nothing changed
	@scripts/install.sh

build: install ## the wheel and the source distribution, into dist/
	@.venv/bin/python -m build --no-isolation --outdir dist .

lambda: install ## the package of the functions of AWS Lambda, into dist/ (ARGS="--architecture arm64")
	@.venv/bin/python scripts/build_lambda.py $(ARGS)

lint: install ## every linter and type checker
	@scripts/lint.sh

check: ## linters, types and unit tests, in two minutes; needs neither root nor a cluster
	@scripts/check.sh $(ARGS)

test: ## what CI runs: install, lint, jest, wheel in a clean environment, pytest
	@scripts/test.sh $(ARGS)

test-full: ## the long tests, a shard at a time (SHARD=slurm-2411); without SHARD, the list of them
	@scripts/test.sh full $(SHARD) $(ARGS)

demo: install ## a guided tour on this machine
	@scripts/ensure-torch.sh
	@.venv/bin/python scripts/demo.py $(ARGS)

bench: install ## the benchmarks
	@scripts/bench.sh $(ARGS)

clean: ## remove what was built; .venv and node_modules stay
	@rm -rf lib tsconfig.tsbuildinfo hyperpod_jlab/labextension dist .ci-work coverage junit.xml \
	  .eslintcache .stylelintcache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
