# The two commands that need nothing before them: `make demo` and `make test`.

PACKAGES := g++ cmake make ninja-build pkg-config libtorch-dev libgloo-dev libopenblas0-openmp libcli11-dev nlohmann-json3-dev \
            libtomlplusplus-dev libcpp-httplib-dev libhwy-dev librandom123-dev zlib1g-dev libpng-dev libmd-dev dataset-fashion-mnist
PYTHON_PACKAGES := python3 python3-dev python3-torch pybind11-dev
TEST_PACKAGES := libgtest-dev libgmock-dev librapidcheck-dev libopenmpi-dev openmpi-bin iproute2 procps chromium chromium-driver python3-numpy doxygen $(PYTHON_PACKAGES)
FUZZ_PACKAGES := clang libclang-rt-14-dev libomp-dev
FUZZ_SECONDS ?= 60
TSAN_TESTS := base_test comm_test exchange_test engine_test data_test log_test launch_test
space := $(subst ,, )
JOBS ?= 2

.DEFAULT_GOAL := build
.PHONY: build demo python test test-debian13 soak fuzz tsan bench docs format tidy setup page setup-python setup-test setup-fuzz clean

SHELL := bash
.SHELLFLAGS := -o pipefail -c

# $(call quietly,LOG,COMMAND): what a command says is kept, and shown only if it fails.
quietly = mkdir -p build && { { $(2); } >build/$(1) 2>&1 || { cat build/$(1); exit 1; }; }

# Every package is asked for only when it is missing, so nothing here needs a network twice.
define install
	@missing=$$(for p in $(1); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ]; then \
	  echo "== installing $$(wc -w <<<"$$missing") Debian packages: about a minute (build/packages.log)"; \
	  sudo="env DEBIAN_FRONTEND=noninteractive"; [ "$$(id -u)" = 0 ] || sudo="sudo $$sudo"; \
	  $(call quietly,packages.log,$$sudo apt-get update && $$sudo apt-get install -y --no-install-recommends $$missing); \
	fi
endef

configure = $(call quietly,configure.log,cmake --preset release -Wno-dev -DCMAKE_UNITY_BUILD=ON $(1))

# $(call compile,TARGET,WHAT): one line that moves on a terminal, elsewhere a line for every tenth of the work.
define compile
	@[ "$$(ninja -C build -n $(1) | tail -1)" = "ninja: no work to do." ] || { \
	  echo "== building $(2)"; export NINJA_STATUS="[%p, %e s] "; \
	  if [ -t 1 ]; then cmake --build build --target $(1) -j $(JOBS); \
	  else cmake --build build --target $(1) -j $(JOBS) | cmake/progress.sh; fi; }
endef

setup: page
	$(call install,$(PACKAGES))

# What report pages embed, from npm, as the lock file pins it. Debian's npm only where there is none.
PAGE := accordion/report/page
page: $(PAGE)/node_modules/.package-lock.json

$(PAGE)/node_modules/.package-lock.json: $(PAGE)/package-lock.json
	$(if $(shell command -v npm),,$(call install,npm))
	@echo "== fetching Apache ECharts for report pages (build/npm.log)"
	@$(call quietly,npm.log,cd $(PAGE) && npm ci --no-audit --no-fund && touch node_modules/.package-lock.json)

setup-python: setup
	$(call install,$(PYTHON_PACKAGES))

setup-test: setup
	$(call install,$(TEST_PACKAGES))

# A folder that is configured stays as it is.
build: setup
	@[ -e build/build.ninja ] || { echo "== configuring: ten seconds"; $(call configure,); }
	$(call compile,accordion,build/accordion: about 5 minutes on two cores)

demo: build
	@echo "== comparing mild and strong compression with Accordion: a small CNN on Fashion-MNIST, 2 workers, 5 seeds: about 2 minutes"
	@build/accordion compare --recipe recipes/demo.toml && echo && build/accordion report runs/compare-demo

# The PyTorch plugin, in build/python.
python: setup-python
	@echo "== configuring: ten seconds"
	@$(call configure,-DACCORDION_PYTHON=ON)
	$(call compile,python,build/python/accordion: about 4 minutes on two cores)

test: setup-test
	@echo "== configuring: ten seconds"
	@$(call configure,-DACCORDION_TESTS=ON -DACCORDION_PYTHON=ON $(if $(CI),-DACCORDION_WERROR=ON))
	$(call compile,all,the program and its tests: about 10 minutes on two cores)
	@echo "== testing: about 15 minutes"
	@ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS) $$([ -t 1 ] && echo --progress)

# The same on Debian 13 (g++ 14, torch 2.6), in a root of its own; DEBIAN13_OPTIONS="-- -R ddp" runs some of the tests.
test-debian13: page
	$(call install,debootstrap)
	@tools/debian13 --jobs $(JOBS) $(PACKAGES) $(TEST_PACKAGES) python3-safetensors $(DEBIAN13_OPTIONS)

# Runs that are killed and gone on with, against the same runs left alone: every codec with every controller.
SOAK_MINUTES ?= 20
soak: build
	$(call install,python3 procps)
	@cd tests && PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 soak.py --minutes $(SOAK_MINUTES)

setup-fuzz: setup-test
	$(call install,$(FUZZ_PACKAGES))

# Every parser and every decoder against FUZZ_SECONDS of arbitrary input; FUZZ_ONLY="idx recipe" runs some. What a fuzzer
# learned stays in build-fuzz/corpus.
fuzz: setup-fuzz
	@cmake --preset fuzz -Wno-dev >/dev/null
	@cmake --build --preset fuzz
	@tools/fuzz build-fuzz $(FUZZ_SECONDS) $(FUZZ_ONLY)

# The threaded parts of the core under the thread sanitizer: about ten minutes.
tsan: setup-fuzz
	@cmake --preset tsan -Wno-dev >/dev/null
	@cmake --build --preset tsan -j $(JOBS) --target $(TSAN_TESTS)
	@RC_PARAMS=max_success=10 TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp ignore_noninstrumented_modules=1 history_size=4" \
	  ctest --test-dir build-tsan --output-on-failure --no-tests=error --timeout 1200 -R '^($(subst $(space),|,$(TSAN_TESTS)))$$'

# Times the C++ DDP beside PyTorch's own.
bench: build
	$(call install,python3-torch)
	@build/accordion bench ddp

# The reference of the headers that are installed, beside the documents; whatever Doxygen warns of is an error.
docs:
	$(call install,doxygen python3)
	@tools/reference accordion build/docs/accordion
	@ACCORDION_VERSION=$$(sed -n 's/.*kVersion = "\(.*\)".*/\1/p' accordion/base/version.h) doxygen docs/Doxyfile
	@echo "== build/docs/html/index.html"

format:
	@git ls-files '*.cpp' '*.h' | xargs clang-format -i

# The torch-free core: clang 14 cannot read torch's headers as C++20.
tidy: setup-test
	@cmake -B build-tidy -G Ninja -Wno-dev -DACCORDION_TORCH=OFF -DACCORDION_MPI=OFF >/dev/null
	@sed -n 's/^ *"file": "\(.*\)".*/\1/p' build-tidy/compile_commands.json | \
	  xargs clang-tidy -p build-tidy --quiet --extra-arg=-Wno-unknown-warning-option

clean:
	@rm -rf build build-*
