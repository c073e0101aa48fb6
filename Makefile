# The two commands that need nothing before them: `make demo` and `make test`.

PACKAGES := g++ cmake make ninja-build libtorch-dev libgloo-dev libopenblas0-openmp libcli11-dev nlohmann-json3-dev \
            libtomlplusplus-dev libhwy-dev librandom123-dev zlib1g-dev libpng-dev libmd-dev dataset-fashion-mnist
TEST_PACKAGES := libgtest-dev librapidcheck-dev libopenmpi-dev openmpi-bin iproute2 python3 python3-numpy python3-torch
FUZZ_PACKAGES := clang libclang-rt-14-dev libomp-dev
FUZZ_SECONDS ?= 60
JOBS ?= 2

.DEFAULT_GOAL := build
.PHONY: build demo test fuzz bench format tidy setup setup-test setup-fuzz clean

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
	@echo "== comparing mild and strong compression with Accordion: a small CNN on Fashion-MNIST, 4 workers"
	@build/accordion compare --recipe recipes/demo.toml

test: setup-test
	@echo "== configuring"
	@cmake --preset release -Wno-dev -DACCORDION_TESTS=ON $(if $(CI),-DACCORDION_WERROR=ON)
	@echo "== building the program and its tests"
	@cmake --build build -j $(JOBS)
	@echo "== testing"
	@ctest --test-dir build --output-on-failure --no-tests=error

setup-fuzz: setup-test
	$(call install,$(FUZZ_PACKAGES))

# Every decoder against FUZZ_SECONDS of arbitrary messages. What a fuzzer learned stays in build-fuzz/corpus.
fuzz: setup-fuzz
	@cmake --preset fuzz -Wno-dev >/dev/null
	@cmake --build --preset fuzz
	@for fuzzer in $$(find build-fuzz/tests/fuzz -maxdepth 1 -name 'fuzz_*' -type f -perm -u+x | sort); do \
	  name=$$(basename $$fuzzer); echo "== $$name"; mkdir -p build-fuzz/corpus/$$name; \
	  OMP_NUM_THREADS=1 UBSAN_OPTIONS=halt_on_error=1 $$fuzzer -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -verbosity=0 \
	    -artifact_prefix=build-fuzz/$$name- build-fuzz/corpus/$$name || exit 1; \
	done

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
