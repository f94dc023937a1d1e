# The front door. What is built, and how, is in CMakeLists.txt and CMakePresets.json.

PRESETS := release asan tsan clang
OTHER_PRESETS := fuzz coverage ha
# How many inputs `make fuzz` tries on each target.
FUZZ_RUNS := 1000000
# How long `make soak` goes on, in seconds.
SECONDS := 3600
JOBS := $(shell nproc)
# Many tests wait for most of their time, for leases and deadlines.
TEST_JOBS := $(shell expr $(JOBS) + 1)
# Warnings fail the build in CI only: a newer compiler must not stop anyone from building.
WERROR := $(if $(filter true,$(CI)),ON,OFF)

.DEFAULT_GOAL := help
.PHONY: help setup build run quick test check-nightly test-long build-benches \
  test-web test-api test-clients screenshots interop histories histories-short bench report \
  fuzz soak planted coverage format tidy clean package test-package newcomer \
  setup-ha run-ha test-ha test-ha-nightly \
  $(PRESETS:%=configure-%) $(PRESETS:%=build-%) $(PRESETS:%=test-%) \
  $(OTHER_PRESETS:%=configure-%) $(OTHER_PRESETS:%=build-%)
# The builds use every core themselves; -j would only mix up what they print.
.NOTPARALLEL:

help: ## list these targets
	@awk -F ' ## ' '/^[a-z].* ## / { sub(/:.*/, "", $$1); printf "make %-14s %s\n", $$1, $$2 }' Makefile
	@echo "One preset at a time: make build-<preset>, make test-<preset>; presets: $(PRESETS)"

setup: ## install what the build needs and lacks (Debian packages)
	@scripts/setup

build: build-release ## build the release; programs are left in build/

# The programs alone: a newcomer need not wait for the tests.
run: configure-release ## build, then start the server; ARGS="--port 7000" passes it flags
	@echo "== build the programs"
	@cmake --build --preset release --parallel $(JOBS) --target lockd_program lockctl
	@exec build/lockd $(ARGS)

# Four commands, each with more than the one before: `make quick` after a change, `make test` before a
# series of commits, `.ci/run` as the judge, `make check-nightly` for what takes hours.
quick: configure-release ## after each change: unit and property tests, 20 s of simulation, a smoke test
	@echo "== build what make quick runs"
	@cmake --build --preset quick --parallel $(JOBS)
	@echo "== test quick"
	@began=$$(date +%s); ctest --preset quick --parallel $(TEST_JOBS) && \
	  echo "== make quick: $$(($$(date +%s) - began)) s of tests"

test: test-release ## build the release and run its tests; CONTRIBUTING.md says how long it takes

# Most of these tests wait for most of their time. Under a sanitizer they compute as well.
test-release: TEST_JOBS := $(shell expr 3 \* $(JOBS))

check-nightly: test-long histories fuzz test-ha test-ha-nightly planted ## what takes hours and rarely finds anything

test-long: configure-release # random tests in full, and the inputs that fuzzers found
	@echo "== build what only long tests need"
	@cmake --build --preset long --parallel $(JOBS)
	@echo "== test in full"
	@ctest --preset long --parallel $(TEST_JOBS)

build-benches: configure-release
	@echo "== build the benchmarks"
	@cmake --build --preset benches --parallel $(JOBS)

test-web: build ## test the dashboard in Chromium; skips when the browser or npm's packages are lacking
	@tests/web/run build/lockd

test-api: build ## what OpenAPI's and Prometheus' own tools say; skips those it cannot get
	@tests/http/api_check build/lockd docs/openapi.json build/api

screenshots: build # the pictures in docs/images
	@SCREENSHOTS=1 tests/web/run build/lockd screenshots

test-clients: build ## test the clients in other languages; skips those whose language is lacking
	@clients/run build/lockd

interop: build ## run published clients against the server; skips those it cannot get
	@tests/interop/run build/dflockd build/interop

package: ## .deb packages, a tarball, SBOMs, the clients and checksums, in build/packages
	@scripts/setup build package ha
	@scripts/package

test-package: package ## lint, install and use what `make package` made; skips what the machine lacks
	@tests/package/run build/packages

# Needs root, the network and time: an hour with TEST=1, which runs `make test` there too.
newcomer: package # what the README says, on a clean Debian 12 in a folder
	@tests/newcomer/run build/packages

histories: build ## record two million operations under faults, and those of all clients; judge both
	@tests/histories/run build/release/tests build/histories $(ARGS)
	@tests/histories/languages build/release/tests build/histories/languages

# The other short history is in `make test`: this one needs the languages.
histories-short: build
	@tests/histories/languages build/release/tests build/histories/languages \
	  --operations 40000 --faults 25 --seconds 40 --seed 20261118

bench: build-release build-ha ## build the release, then run the benchmarks
	@cmake --build --preset release --target bench
	@cmake --build --preset ha --target ha_bench
	@build/release/bench/ha_bench

# A trial leaves the documents alone.
report: configure-release ## measure, record and draw the plots of docs/performance.md; QUICK=1 is a trial
	@cmake --build --preset release --parallel $(JOBS) --target report_benches
	@scripts/report measure build/release/bench $(if $(QUICK),--quick --docs build/report)

fuzz: build-fuzz ## fuzz every parser with FUZZ_RUNS=1000000 inputs
	@scripts/fuzz build/fuzz $(FUZZ_RUNS)

soak: build ## simulate for SECONDS=3600, with a line of progress
	@build/release/tests/simulate --seconds $(SECONDS) --first $$(date +%s)000

planted: setup ## plant one bug after the other in a copy of the sources; the tests must find each
	@tests/planted/run build/planted $(ARGS)

coverage: build-coverage ## which lines and branches of src the tests reach
	@scripts/coverage build/coverage

# gRPC is the heaviest dependency, so only these targets install it. They share the release's build.
configure-ha: setup-ha

setup-ha:
	@scripts/setup develop ha etcd

run-ha: build-ha ## three members of etcd and three servers on this machine, to try out
	@exec scripts/cluster

test-ha: build-ha ## build lockd-ha and test it on a real etcd, with members and servers that are killed
	@ctest --preset ha

test-ha-nightly: build-ha # on the etcd of today as well, and histories of a cluster in full
	@ctest --preset ha-nightly

format: setup ## format every source in place
	@scripts/format

# Over the clang build: clang-tidy does not know all of gcc's flags.
tidy: configure-clang ## run clang-tidy over src
	@run-clang-tidy -quiet -j $(JOBS) -p build/clang '/src/'

clean: ## remove everything that was built
	rm -rf build

$(PRESETS:%=configure-%) $(OTHER_PRESETS:%=configure-%): configure-%: setup
	@echo "== configure $*"
	@cmake --preset $* -DLOCKD_WERROR=$(WERROR) >/dev/null # warnings and errors are on stderr

$(PRESETS:%=build-%) $(OTHER_PRESETS:%=build-%): build-%: configure-%
	@echo "== build $*"
	@cmake --build --preset $* --parallel $(JOBS)

$(PRESETS:%=test-%): test-%: build-%
	@echo "== test $*"
	@ctest --preset $* --parallel $(TEST_JOBS)
