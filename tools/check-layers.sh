#!/bin/sh
# Who may include whom: formats -> core -> kernels -> mma -> gemm -> io -> verify -> ablate -> train -> cli, one way. src/ and ref/ never include each
# other; cli/ may include the headers of ref/; ablate/, train/ and cli/ see public headers alone. Prints each include that breaks this; exit 1 if any does.
set -eu
cd "$(dirname "$0")/.."
find src ref include -name '*.[ch]' | sort | xargs grep -Hn '^ *# *include *"' | awk -F: '
  BEGIN {
    n = split("core kernels mma gemm io verify ablate train cli", order, " ")
    for (i = 1; i <= n; i++) rank[order[i]] = i
  }
  {
    split($1, at, "/")
    file = $1; line = $2
    text = $0; sub(/^[^"]*"/, "", text); sub(/".*/, "", text)
    bad = ""
    if (text ~ /formats\//) next
    if (at[1] == "include") {
      if (text ~ /\//) bad = "a public header includes public headers beside it alone"
    } else if (at[1] == "ref") {
      if (text ~ /^mxgold\// || text !~ /\//) next
      bad = "ref/ stands on formats/ and public headers alone"
    } else {
      layer = at[2]
      if (text ~ /^mxgold\//) next
      if (text ~ /ref\//) { if (layer != "cli" || text !~ /^ref\/[a-z]+\.h$/) bad = "src/ and ref/ never include each other" }
      else if (text ~ /\//) {
        split(text, to, "/")
        if (!(to[1] in rank)) bad = "not a layer"
        else if (to[1] != layer && (layer == "ablate" || layer == "train" || layer == "cli")) bad = layer " sees public headers alone"
        else if (rank[to[1]] > rank[layer]) bad = layer " comes before " to[1]
      }
    }
    if (bad != "") { print file ":" line ": \"" text "\": " bad; broken++ }
    seen++
  }
  END { if (!seen) print "layers: no include was seen"; else if (!broken) print "layers: no include breaks the order"; exit broken || !seen }'
