#!/bin/bash
# The tables of doc/cuda-coverage.md are those of the API as it is, and each refused function has its reason there.
. "${0%/*}/lib.sh"

ok "each refused function has its reason" sh -c "'$top/stubs/gen/coverage-table' '$top/stubs/api/cuda.api' >table"
sed -n '/^| section/,$p' "$top/doc/cuda-coverage.md" >documented
is "$(diff table documented)" "" "doc/cuda-coverage.md has the tables as they are"

done_testing
