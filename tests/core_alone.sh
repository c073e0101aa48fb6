#!/usr/bin/env bash
# Builds the core without libtorch, under the address and undefined-behaviour sanitizers, and runs the tests of what reads
# messages and files or shares memory between threads. The other tests would find nothing here that they do not find anyway.
# Compiled anew are the libraries; the tests' own objects are those of the build that this one lies in, where they are there.
set -euo pipefail
source_dir=${1:?usage: core_alone.sh SOURCE_DIR BUILD_DIR}
build_dir=${2:?usage: core_alone.sh SOURCE_DIR BUILD_DIR}
libraries=(accordion_adapt accordion_launch accordion_report accordion_run)
tests=(base_test kernels_test compress_test comm_test exchange_test engine_test decode_test parse_test log_test)

# Kernels for one instruction set: the others are the same source, and each takes as long to compile.
cmake -S "$source_dir" -B "$build_dir" -G Ninja -Wno-dev -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1 -DHWY_COMPILE_ONLY_STATIC" \
  -DCMAKE_UNITY_BUILD=ON -DACCORDION_TORCH=OFF -DACCORDION_MPI=OFF -DACCORDION_TESTS=ON -DACCORDION_SANITIZE=address,undefined \
  -DACCORDION_TEST_OBJECTS="$(dirname "$build_dir")"
cmake --build "$build_dir" -j 2 --target "${libraries[@]}" "${tests[@]}"
if ldd "$build_dir"/lib/exchange/exchange_test | grep -q torch; then
  echo "the core links torch" >&2
  exit 1
fi
# A quarter of the cases of each property: the address sanitizer needs one to see a bad address.
RC_PARAMS=max_success=25 ctest --test-dir "$build_dir" --output-on-failure --no-tests=error -j 2 \
  -R "^($(IFS='|' && echo "${tests[*]}"))\$"
