#!/usr/bin/env bash
# Of ninja's status lines, "[ 37%, 81.2 s] Building ...", one for every tenth; everything else as it comes.
next=0
while IFS= read -r line; do
  if [[ $line =~ ^\[\ *([0-9]+)%, ]]; then
    ((BASH_REMATCH[1] < next)) && continue
    echo "${line%%]*}]"
    next=$((BASH_REMATCH[1] / 10 * 10 + 10))
  elif [[ $line != ninja:* ]]; then
    echo "$line"
  fi
done
