# The two commands that need nothing before them: `make demo` and `make test`.

PACKAGES := g++ cmake make ninja-build libtorch-dev libgloo-dev libopenblas0-openmp libcli11-dev nlohmann-json3-dev \
            libhwy-dev librandom123-dev zlib1g-dev libpng-dev libmd-dev dataset-fashion-mnist
TEST_PACKAGES := libgtest-dev librapidcheck-dev libopenmpi-dev openmpi-bin python3 python3-torch
JOBS ?= 2

.DEFAULT_GOAL := build
.PHONY: build demo test bench format tidy setup setup-test clean

# Every package is asked for only when it is missing, so nothing here needs a network twice.
define install
	@missing=$$(for p in $(1); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ]; then \
	  echo "== installing Debian packages:" $$missing; \
	  sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	  $$sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq && \
	  $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing; \
	fi
endef

setup:
	$(call install,$(PACKAGES))

setup-test: setup
	$(call install,$(TEST_PACKAGES))

build: setup
	@echo "== configuring"
	@cmake --preset release -Wno-dev >build.log 2>&1 || { cat build.log; exit 1; }; rm -f build.log
	@echo "== building build/accordion"
	@cmake --build build --target accordion -j $(JOBS)

demo: build
	@echo "== training a small CNN on Fashion-MNIST with 4 workers"
	@build/accordion train --recipe recipes/demo.toml --workers 4

test: setup-test
	@echo "== configuring"
	@cmake --preset release -Wno-dev -DACCORDION_TESTS=ON $(if $(CI),-DACCORDION_WERROR=ON)
	@echo "== building the program and its tests"
	@cmake --build build -j $(JOBS)
	@echo "== testing"
	@ctest --test-dir build --output-on-failure --no-tests=error

# Times the C++ DDP beside PyTorch's own.
bench: build
	$(call install,python3-torch)
	@build/accordion bench ddp

format:
	@git ls-files '*.cpp' '*.h' | xargs clang-format -i

# The torch-free core: clang 14 cannot read torch's headers as C++20.
tidy: setup-test
	@cmake -B build-tidy -G Ninja -Wno-dev -DACCORDION_TORCH=OFF -DACCORDION_MPI=OFF >/dev/null
	@sed -n 's/^ *"file": "\(.*\)".*/\1/p' build-tidy/compile_commands.json | \
	  xargs clang-tidy -p build-tidy --quiet --extra-arg=-Wno-unknown-warning-option

clean:
	@rm -rf build build-*
