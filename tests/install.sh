#!/usr/bin/env bash
# Installs into a folder, then builds and runs a small outside project that finds the package there.
set -euo pipefail
source_dir=${1:?usage: install.sh SOURCE_DIR BUILD_DIR}
build_dir=${2:?usage: install.sh SOURCE_DIR BUILD_DIR}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build_dir" --prefix "$work/prefix" >/dev/null
if grep -rl 'gtest\|gmock' "$work/prefix/include"; then
  echo "install: these headers are for the project's own tests" >&2
  exit 1
fi
cmake -S "$source_dir/examples/outside" -B "$work/build" -G Ninja -Wno-dev -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build"
"$work/build/outside"
"$work/prefix/bin/accordion" --version

# What it needs at run time was installed with it: the program with torch, and the scripts of its benchmarks.
cd "$work"
answers() {
  local expected=$1 answer
  shift
  answer=$("$work/prefix/bin/accordion" "$@")
  if ! grep -q "$expected" <<<"$answer"; then
    echo "install: accordion $* answers without $expected: $answer" >&2
    exit 1
  fi
}
answers resnet18 models
answers '"torch_ms": [0-9]' bench codecs --model resnet18 --codecs sign-vote --repetitions 1 --json
answers '"ratio": [0-9]' bench ddp --models cnn --workers 1 --steps 6 --json
