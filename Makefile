# The front door. What is built, and how, is in CMakeLists.txt and CMakePresets.json.

PRESETS := release asan tsan clang
# How many inputs `make fuzz` tries on each target.
FUZZ_RUNS := 1000000
JOBS := $(shell nproc)
# Warnings fail the build in CI only: a newer compiler must not stop anyone from building.
WERROR := $(if $(filter true,$(CI)),ON,OFF)

.DEFAULT_GOAL := help
.PHONY: help setup build run test test-web test-api screenshots interop bench fuzz format tidy clean \
  $(PRESETS:%=configure-%) $(PRESETS:%=build-%) $(PRESETS:%=test-%) configure-fuzz build-fuzz \
  setup-ha configure-ha build-ha test-ha
# The builds use every core themselves; -j would only mix up what they print.
.NOTPARALLEL:

help: ## list these targets
	@awk -F ' ## ' '/^[a-z].* ## / { sub(/:.*/, "", $$1); printf "make %-8s %s\n", $$1, $$2 }' Makefile
	@echo "One preset at a time: make build-<preset>, make test-<preset>; presets: $(PRESETS)"

setup: ## install what the build needs and lacks (Debian packages)
	@scripts/setup

build: build-release ## build the release; programs are left in build/

run: build ## build, then start the server; ARGS="--port 7000" passes it flags
	@exec build/dflockd $(ARGS)

test: test-release build-clang test-asan test-tsan ## release, clang (compile only), asan+ubsan and tsan suites

test-web: build ## test the dashboard in Chromium; skips when the browser or npm's packages are lacking
	@tests/web/run build/dflockd

test-api: build ## what OpenAPI's and Prometheus' own tools say; skips those it cannot get
	@tests/http/api_check build/dflockd docs/openapi.json build/api

screenshots: build # the pictures in docs/images
	@SCREENSHOTS=1 tests/web/run build/dflockd screenshots

interop: build ## run published clients against the server; skips those it cannot get
	@tests/interop/run build/dflockd build/interop

bench: build-release ## build the release, then run the benchmarks
	@cmake --build --preset release --target bench

# New inputs go to build/fuzz/corpus; those worth keeping are merged into tests/fuzz/corpus by hand.
fuzz: build-fuzz ## fuzz every parser with FUZZ_RUNS=1000000 inputs
	@for fuzzer in build/fuzz/fuzzers/*_fuzz; do \
	  name=$${fuzzer##*/}; echo "== fuzz $$name"; mkdir -p build/fuzz/corpus/$$name; \
	  $$fuzzer -runs=$(FUZZ_RUNS) -max_len=70000 -timeout=10 -artifact_prefix=build/fuzz/$$name- \
	    build/fuzz/corpus/$$name tests/fuzz/corpus/$$name || exit 1; \
	done

setup-ha:
	@scripts/setup ha

configure-ha: setup-ha
	@echo "== configure ha"
	@cmake --preset ha -DLOCKD_WERROR=$(WERROR) >/dev/null # warnings and errors are on stderr

# gRPC is the heaviest thing that is linked anywhere here, so nothing else waits for it.
build-ha: configure-ha ## build dflockd-ha, which is highly available on etcd; left in build/
	@cmake --build --preset ha --parallel $(JOBS)

test-ha: build-ha ## test it on a real etcd, with members and servers that are killed
	@ctest --preset ha

format: setup ## format every source in place
	@scripts/format

# Over the clang build: clang-tidy does not know all of gcc's flags.
tidy: configure-clang ## run clang-tidy over src
	@run-clang-tidy -quiet -j $(JOBS) -p build/clang '/src/'

clean: ## remove everything that was built
	rm -rf build

$(PRESETS:%=configure-%) configure-fuzz: configure-%: setup
	@echo "== configure $*"
	@cmake --preset $* -DLOCKD_WERROR=$(WERROR) >/dev/null # warnings and errors are on stderr

$(PRESETS:%=build-%) build-fuzz: build-%: configure-%
	@echo "== build $*"
	@cmake --build --preset $* --parallel $(JOBS)

$(PRESETS:%=test-%): test-%: build-%
	@echo "== test $*"
	@ctest --preset $* --parallel $(JOBS)
