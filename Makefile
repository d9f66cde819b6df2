# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: dist corpus shapes run test lint bench docs site evidence fuzz kill ecosystem cache-walk verify-long planted clean

run: .venv/run.stamp  ## lint the example project and show what --fix would do
	$(BIN)/torchdet-lint examples/birdsong || test $$? -eq 1
	@echo
	@echo "What --fix would do:"
	@echo
	$(BIN)/torchdet-lint examples/birdsong --diff || test $$? -eq 1

test: .venv/test.stamp  ## the whole suite
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

lint: .venv/dev.stamp  ## ruff, mypy, generated files, and the project by itself
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check
	$(BIN)/mkdocs build --strict --quiet
	$(BIN)/torchdet-lint torchdet_lint tests benchmarks docs

bench: .venv/test.stamp  ## side by side with the peers; SOURCES=… names the trees
	$(BIN)/python benchmarks/static.py $(SOURCES)

docs: .venv/run.stamp  ## the rule pages and the README's table, from rules/
	$(BIN)/python docs/generate.py

site: .venv/dev.stamp docs  ## the documentation as a site, in build/site; every link is checked
	$(BIN)/mkdocs build --strict --quiet

dist: .venv/test.stamp  ## sdist and wheel in dist/, built twice and compared byte for byte
	$(BIN)/python release/dist.py

evidence: .venv/test.stamp  ## what the installed torch says of its ops, and what installed libraries draw from, beside the tables
	$(BIN)/python tests/evidence.py

corpus: .venv/test.stamp  ## what the two readers of Python call every call of TREES, and why they differ
	$(BIN)/python tests/readers.py $(TREES)

shapes: .venv/test.stamp  ## how time grows with the program, for two hundred shapes of program
	$(BIN)/python benchmarks/shapes.py $(SHAPES)

MINUTES ?= 10
RUNS ?= 1000

fuzz: .venv/test.stamp  ## inputs at random for MINUTES, made of the examples and of the files in TREES; FUZZ=--cheap: many small ones
	$(BIN)/python tests/fuzz.py $(TREES) --minutes $(MINUTES) $(FUZZ)

kill: .venv/test.stamp  ## two hundred runs killed while they write: no damaged file, nothing left over
	$(BIN)/python tests/kill.py

ecosystem: .venv/test.stamp  ## what the rules find in two hundred packages, beside the kept counts; PACKAGES=… names some
	$(BIN)/python benchmarks/ecosystem $(PACKAGES)

cache-walk: .venv/test.stamp  ## a thousand edits of a project, and of a folder that is none, each linted with the cache and without
	$(BIN)/python -m pytest -m slow tests/test_cache_walk.py

verify-long: .venv/test.stamp  ## the slow tests of the runtime half, and RUNS runs of deterministic programs: false alarms, counted
	$(BIN)/python -m pytest -m slow tests/verifier
	$(BIN)/python benchmarks/false_alarms.py --runs $(RUNS)

planted: .venv/test.stamp  ## sixty programs with planted causes: how many the verifier names right, and whether its commands cure; PLANTED="--fix --minutes 60"
	$(BIN)/python benchmarks/planted $(PLANTED)

clean:
	rm -rf .venv .torchdet_cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info torchdet_lint/catalogue/compiled.msgpack

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/run.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/test.stamp: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	@touch $@ .venv/run.stamp

.venv/dev.stamp: .venv/test.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,dev]"
	@touch $@
