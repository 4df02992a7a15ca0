# A front for Meson. Every target first installs what it is missing (see scripts/deps).

SAN =
BUILD = build$(if $(SAN),-$(SAN))
PREFIX = /usr/local
BENCH =
MINUTES = 5
WORLD = all
MUTANTS = 300
SEED = 1
MESON = /usr/bin/meson
SETUP_address = -Db_sanitize=address,undefined -Db_lundef=false
SETUP_thread = -Db_sanitize=thread -Db_lundef=false
SETUP_coverage = -Dc_args='-fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc' \
    -Dc_link_args=-fprofile-instr-generate
TESTS = tests/integration
CONTRACT = $(addprefix tests/integration/,locks/test_contract.py locks/test_contract_sets.py locks/test_token.py \
    locks/test_lease.py locks/test_yield.py transactions/test_tx.py postgres/test_init.py postgres/test_roles.py postgres/test_sql_keys.py postgres/test_sql_locks.py \
    postgres/test_sql_views.py)

.PHONY: all deps run test test-versions chaos soak coverage mutation lint format bench site dist deb test-packages install clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja: | build-deps
	$(MESON) setup $(SETUP_$(SAN)) $(BUILD)

.PHONY: build-deps
build-deps:
	@scripts/deps build

deps:
	@scripts/deps build test lint

run: all
	@scripts/demo $(BUILD)

test: all
	@scripts/deps test
	@scripts/$(if $(SAN),test-sanitized $(SAN),test) $(BUILD)

# The contract on the versions of PostgreSQL that `test` leaves out.
test-versions: all
	@scripts/deps test versions
	HOLDFAST_TEST_VERSIONS='14 16 17' HOLDFAST_BUILD=$(abspath $(BUILD)) /usr/bin/python3 -m pytest -n 3 --dist loadgroup \
	    -o cache_dir=$(abspath $(BUILD))/pytest $(CONTRACT)

# What of the library the tests run; TESTS says which of the server tests.
coverage:
	@scripts/deps build test coverage
	@[ -e build-coverage/build.ninja ] || CC=clang-19 $(MESON) setup $(SETUP_coverage) build-coverage
	@LLVM_PROFILE_FILE=/dev/null ninja -C build-coverage
	@scripts/coverage build-coverage $(TESTS)

chaos: all
	@scripts/deps test
	@HOLDFAST_BUILD=$(BUILD) tests/chaos/run --world $(WORLD) --minutes $(MINUTES)

soak: all
	@scripts/deps test
	@HOLDFAST_BUILD=$(abspath $(BUILD)) tests/soak/run --minutes $(if $(filter command,$(origin MINUTES)),$(MINUTES),30)

# Takes an hour or more: faults are planted, and every one is looked for.
mutation: all
	@scripts/deps test
	@tests/mutation/run --build $(BUILD) --mutants $(MUTANTS) --seed $(SEED)

lint:
	@scripts/deps build lint
	@scripts/lint

format:
	@scripts/deps lint
	clang-format -i $$(scripts/list-sources)

bench: all
	@scripts/deps test bench
	HOLDFAST_BUILD=$(abspath $(BUILD)) bench/measure $(BENCH)

# The guides as a static site; a link that leads nowhere fails.
site:
	@scripts/deps site
	@scripts/site $(BUILD)/site

install: all
	$(MESON) configure $(BUILD) -Dprefix=$(PREFIX)
	DESTDIR="$(DESTDIR)" $(MESON) install -C $(BUILD)

# A tarball of what is committed, from which everything builds without git.
dist: | build-deps
	@scripts/dist

# Debian packages, into $(BUILD)/packages.
deb:
	@scripts/deps build deb
	@scripts/deb $(BUILD)/packages

# Installs the packages into a bare Debian and tries them there. Takes minutes and needs root.
test-packages: deb
	@scripts/test-packages $(BUILD)/packages

clean:
	rm -rf $(BUILD) build-*
