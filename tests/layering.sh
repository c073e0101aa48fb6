#!/usr/bin/env bash
# A folder includes only folders above it, and torch is seen only below its line or in comm's own c10d sources.
set -euo pipefail
cd "${1:?usage: layering.sh SOURCE_DIR}"

core=(base launch kernels compress comm exchange perf adapt log engine report data run)
torch=(ddp models train)
failed=0

complain() {
  echo "layering: $1" >&2
  failed=1
}

above=()
for folder in "${core[@]}" "${torch[@]}"; do
  above+=("$folder")
  for file in accordion/"$folder"/*.{h,cpp}; do
    [ -e "$file" ] || continue
    while read -r included; do
      case " ${above[*]} " in
        *" $included "*) ;;
        *) complain "$file includes accordion/$included, which is not above accordion/$folder" ;;
      esac
    done < <(sed -nE 's,^#include "accordion/([a-z]+)/.*,\1,p' "$file")
    grep -qE '^#include "(cli|bench)/' "$file" && complain "$file includes the program"
  done
done

for folder in accordion/*/; do
  folder=$(basename "$folder")
  case " ${above[*]} " in
    *" $folder "*) ;;
    *) complain "accordion/$folder has no place in the order; add it to tests/layering.sh" ;;
  esac
done

for folder in "${core[@]}"; do
  for file in accordion/"$folder"/*.{h,cpp}; do
    [ -e "$file" ] || continue
    case "$file" in
      accordion/comm/c10d*) continue ;;
      accordion/comm/mpi*)
        grep -qE '^#include <(torch|ATen|c10)/' "$file" && complain "$file includes torch"
        continue
        ;;
    esac
    grep -qE '^#include <(torch|ATen|c10|mpi\.h)' "$file" && complain "$file includes torch or MPI"
  done
done

# Who uses the C++ DDP compiles what its options need: no codec, no exchange, no engine.
seen=(accordion/ddp/ddp.h)
for ((i = 0; i < ${#seen[@]}; ++i)); do
  while read -r included; do
    case " ${seen[*]} " in
      *" $included "*) continue ;;
    esac
    seen+=("$included")
    case "$included" in
      accordion/kernels/* | accordion/exchange/exchange.h | accordion/engine/engine.h | accordion/compress/codec*)
        complain "${seen[$i]} brings $included to everyone who includes accordion/ddp/ddp.h" ;;
    esac
  done < <(sed -nE 's,^#include "(accordion/[^"]*)".*,\1,p' "${seen[$i]}")
done

# No environment variables below cli/, except where processes are started.
while read -r line; do
  complain "environment read below cli/: $line"
done < <(grep -rnE '\bgetenv\(' accordion --include='*.cpp' | grep -vE '_test\.cpp:|^accordion/launch/' || true)

exit $failed
