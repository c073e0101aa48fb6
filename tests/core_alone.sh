#!/usr/bin/env bash
# Configures, builds and tests the core without libtorch, under the address and undefined-behaviour sanitizers.
set -euo pipefail
source_dir=${1:?usage: core_alone.sh SOURCE_DIR BUILD_DIR}
build_dir=${2:?usage: core_alone.sh SOURCE_DIR BUILD_DIR}
cmake -S "$source_dir" -B "$build_dir" -G Ninja -Wno-dev -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" \
  -DACCORDION_TORCH=OFF -DACCORDION_MPI=OFF -DACCORDION_TESTS=ON -DACCORDION_SANITIZE=address,undefined
cmake --build "$build_dir" -j 2
if ldd "$build_dir"/lib/exchange/exchange_test | grep -q torch; then
  echo "the core links torch" >&2
  exit 1
fi
ctest --test-dir "$build_dir" --output-on-failure --no-tests=error -E '^layering$'
