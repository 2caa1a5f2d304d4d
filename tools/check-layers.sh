#!/bin/sh
# Holds every include and every call between files of src/, ref/, python/ and hip_backend/ to the table of tools/rooms.txt. Includes are read from the
# sources, calls from the symbols of the objects (nm), so that a function called without its header, or through a public one, is seen too. A room of
# twenty files or more must have its reason in docs/HOUSE.md.
#   check-layers.sh OBJ [ROOT [TABLE [HIP]]]   the objects below OBJ of the tree ROOT (default: this one); exit 1 and a line for each fault
#                                              HIP: the objects of hip_backend below it are up to date, and their calls are held to the table too
#   check-layers.sh --plant CC                 makes small trees with one fault each and shows that each is told
set -eu
here=$(cd "$(dirname "$0")" && pwd)

# One tree a line: name|what must be said, or nothing if the tree is fine|file: code|file: code ...
plant() {
  tmp=$(mktemp -d)
  trap 'rm -rf "$tmp"' EXIT
  missed=0 planted=0
  while IFS='|' read -r name said files; do
    [ -n "$name" ] || continue
    planted=$((planted + 1)) tree=$tmp/$planted
    mkdir -p "$tree/include/mxgold" "$tree/formats" "$tree/ref"
    touch "$tree/include/mxgold/quantize.h" "$tree/ref/ref.h" "$tree/formats/keys.def"
    printf '%s\n' "$files" | tr '|' '\n' | while IFS= read -r one; do
      file=${one%%: *}
      mkdir -p "$tree/$(dirname "$file")" "$tree/obj/$(dirname "$file")"
      printf '%b\n' "${one#*: }" >>"$tree/$file"
    done
    (cd "$tree" && find ./* -name '*.c') | while IFS= read -r file; do
      # shellcheck disable=SC2086
      $1 -I"$tree" -I"$tree/include" -I"$tree/src" -w -c "$tree/$file" -o "$tree/obj/${file%.c}.o" </dev/null || exit 2
    done
    [ -z "$(find "$tree/obj" -path '*/hip_backend/*.o')" ] || mv "$tree/obj/hip_backend" "$tree/hip"
    table=$here/rooms.txt
    if [ "$name" = "a circle of rooms" ]; then
      table=$tmp/circle.txt
      printf 'src/core src/io\nsrc/kernels src/core\nsrc/io src/kernels\n' >"$table"
    else
      grep -v '^circle' "$table" >"$tmp/rooms.txt" && table=$tmp/rooms.txt
      [ "$name" != "an allowed circle" ] || printf 'circle src/io/a.c src/io/b.c they are the planted pair\n' >>"$table"
      [ "$name" != "a stale line" ] || printf 'circle src/io/a.c src/io/b.c they are the planted pair\n' >>"$table"
    fi
    if "$here/check-layers.sh" "$tree/obj" "$tree" "$table" "$tree/hip" >"$tmp/told" 2>&1; then fine=1; else fine=0; fi
    if [ -z "$said" ] && [ $fine = 0 ] || [ -n "$said" ] && { [ $fine = 1 ] || ! grep -qF "$said" "$tmp/told"; }; then
      echo "check-layers: planted $name: expected \"${said:-no fault}\", told:"
      cat "$tmp/told"
      missed=1
    fi
  done <<'TREES'
nothing wrong||src/core/a.c: int mx_a(void) { return 1; }|src/kernels/b.c: #include "mxgold/quantize.h"\n#include "formats/keys.def"\nint mx_a(void); int mx_b(void) { return mx_a(); }|src/cli/c.c: #include "ref/ref.h"\nint mx_b(void), ref_b(void); int main(void) { return mx_b() + ref_b(); }|ref/b.c: #include "ref.h"\nint ref_b(void) { return 1; }
an upward call|src/core calls mx_b of src/kernels/b.c|src/core/a.c: int mx_b(void); int mx_a(void) { return mx_b(); }|src/kernels/b.c: int mx_b(void) { return 1; }
an upward include|src/core includes kernels/b.h|src/core/a.c: #include "kernels/b.h"\nint mx_a(void) { return B; }|src/kernels/b.h: enum { B = 1 };
an upward include by a relative path|src/core includes ../kernels/b.h|src/core/a.c: #include "../kernels/b.h"\nint mx_a(void) { return B; }|src/kernels/b.h: enum { B = 1 };
a call sideways|src/verify/judge calls mxi_p of src/verify/probe/p.c|src/verify/judge/j.c: int mxi_p(void); int mx_j(void) { return mxi_p(); }|src/verify/probe/p.c: int mxi_p(void) { return 1; }
the library and the reference|src/io includes ref/ref.h|src/io/a.c: #include "ref/ref.h"\nint mx_a(void) { return 1; }
the reference and the library|ref calls mx_a of src/core/a.c|src/core/a.c: int mx_a(void) { return 1; }|ref/a.c: int mx_a(void); int ref_a(void) { return mx_a(); }
a header of the library in ablate|src/ablate includes core/a.h|src/core/a.h: enum { A = 1 };|src/ablate/a.c: #include "core/a.h"\nint mx_a(void) { return A; }
a private function in train|src/train/run calls mxi_a of src/core/a.c|src/core/a.c: int mxi_a(void) { return 1; }|src/train/run/t.c: int mxi_a(void); int mx_t(void) { return mxi_a(); }
a private function in cli|src/cli calls mxi_a of src/core/a.c|src/core/a.c: int mxi_a(void) { return 1; }|src/cli/t.c: int mxi_a(void); int mx_t(void) { return mxi_a(); }
base and the table of commands|src/cli/base calls cli_a of src/cli/a.c|src/cli/a.c: int cli_a(void) { return 1; }|src/cli/base/b.c: int cli_a(void); int cli_b(void) { return cli_a(); }
a circle of files|src/io/a.c and src/io/b.c call each other|src/io/a.c: int mxi_b(void); int mxi_a(void) { return mxi_b(); }|src/io/b.c: int mxi_a(void); int mxi_b(void) { return mxi_a(); }
an allowed circle||src/io/a.c: int mxi_b(void); int mxi_a(void) { return mxi_b(); }|src/io/b.c: int mxi_a(void); int mxi_b(void) { return mxi_a(); }
a stale line|src/io/a.c and src/io/b.c no longer call each other|src/io/a.c: int mxi_a(void) { return 1; }|src/io/b.c: int mxi_a(void); int mxi_b(void) { return mxi_a(); }
a folder without a room|src/attic is no room|src/attic/a.c: int mx_a(void) { return 1; }
a room below and one above||hip_backend/run/a.c: int mx_a(void); int mxh_a(void) { return mx_a(); }|hip_backend/compare/b.c: #include "hip_backend/run/a.h"\n#include "tests/lib/t.h"\nint mxh_a(void); int mxh_b(void) { return mxh_a() + T; }|hip_backend/run/a.h: enum { A = 1 };|tests/lib/t.h: enum { T = 1 };|src/core/a.c: int mx_a(void) { return 1; }
an upward include of the backend|hip_backend/run includes hip_backend/kernels/device/a.h|hip_backend/kernels/device/a.h: enum { A = 1 };|hip_backend/run/b.cc: #include "hip_backend/kernels/device/a.h"|src/core/a.c: int mx_a(void); int mx_b(void) { return mx_a(); }
an upward include of a kernel|hip_backend/run includes hip_backend/kernels/device/a.h|hip_backend/kernels/device/a.h: enum { A = 1 };|hip_backend/run/b.hip: #include "hip_backend/kernels/device/a.h"|src/core/a.c: int mx_a(void); int mx_b(void) { return mx_a(); }
an upward call of the backend|hip_backend/gfx950 calls mxh_b of hip_backend/compare/b.c|hip_backend/gfx950/a.c: int mxh_b(void); int mxh_a(void) { return mxh_b(); }|hip_backend/compare/b.c: int mxh_b(void) { return 1; }
a private function in the backend|hip_backend/run calls mxi_a of src/core/a.c|src/core/a.c: int mxi_a(void) { return 1; }|hip_backend/run/t.c: int mxi_a(void); int mxh_t(void) { return mxi_a(); }
the library and the backend|src/core calls mxh_a of hip_backend/run/a.c|hip_backend/run/a.c: int mxh_a(void) { return 1; }|src/core/b.c: int mxh_a(void); int mx_b(void) { return mxh_a(); }
a folder of the backend without a room|hip_backend/attic is no room|hip_backend/attic/a.c: int mxh_a(void) { return 1; }
a room of twenty without a reason|src/io has 20 files, and docs/HOUSE.md no line|docs/HOUSE.md: - `src/core`: it is planted|src/io/a.c: int mx_a(void) { return 1; }|src/io/h00.h: #pragma once|src/io/h01.h: #pragma once|src/io/h02.h: #pragma once|src/io/h03.h: #pragma once|src/io/h04.h: #pragma once|src/io/h05.h: #pragma once|src/io/h06.h: #pragma once|src/io/h07.h: #pragma once|src/io/h08.h: #pragma once|src/io/h09.h: #pragma once|src/io/h10.h: #pragma once|src/io/h11.h: #pragma once|src/io/h12.h: #pragma once|src/io/h13.h: #pragma once|src/io/h14.h: #pragma once|src/io/h15.h: #pragma once|src/io/h16.h: #pragma once|src/io/h17.h: #pragma once|src/io/h18.h: #pragma once
a room of twenty with one||docs/HOUSE.md: - `src/io`: it is planted|src/io/a.c: int mx_a(void) { return 1; }|src/io/h00.h: #pragma once|src/io/h01.h: #pragma once|src/io/h02.h: #pragma once|src/io/h03.h: #pragma once|src/io/h04.h: #pragma once|src/io/h05.h: #pragma once|src/io/h06.h: #pragma once|src/io/h07.h: #pragma once|src/io/h08.h: #pragma once|src/io/h09.h: #pragma once|src/io/h10.h: #pragma once|src/io/h11.h: #pragma once|src/io/h12.h: #pragma once|src/io/h13.h: #pragma once|src/io/h14.h: #pragma once|src/io/h15.h: #pragma once|src/io/h16.h: #pragma once|src/io/h17.h: #pragma once|src/io/h18.h: #pragma once
a circle of rooms|the table has a circle|src/core/a.c: int mx_a(void) { return 1; }
TREES
  [ $missed = 0 ] && echo "check-layers: $planted planted trees: each told"
  exit $missed
}
[ "${1:-}" != --plant ] || plant "$2"

obj=$(cd "${1:-$here/../build/release/obj}" && pwd) || exit 2
table=${3:-$here/rooms.txt} hip=
[ ! -d "${4:-}" ] || hip=$(cd "$4" && pwd)
cd "${2:-$here/..}"
places= headers=
for place in src ref python hip_backend; do [ ! -d $place ] || places="$places $place"; done
for place in include formats tests/lib; do [ ! -d $place ] || headers="$headers $place"; done
# A room of twenty files or more has a line in docs/HOUSE.md that says why it is one room.
large=
[ ! -f docs/HOUSE.md ] || for room in $(sed -n 's/^\([^# ][^ ]*\).*/\1/p' "$table" | grep -vx circle) include/mxgold formats tests tests/lib tests/cli bench tools; do
  [ -d "$room" ] || continue
  n=$(find "$room" -maxdepth 1 -type f | wc -l)
  [ "$n" -lt 20 ] || grep -q "^- \`$room\`: " docs/HOUSE.md || { echo "layers: $room has $n files, and docs/HOUSE.md no line that says why it is one room"; large=1; }
done
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
# shellcheck disable=SC2086
find $places $headers -path hip_backend/tests -prune -o \( -name '*.[ch]' -o -name '*.cc' -o -name '*.hip' -o -name '*.def' \) -print | sort >"$lists/files"
grep -E '^(src|ref|python|hip_backend)/' "$lists/files" | xargs grep -Hn '^ *# *include *"' >"$lists/includes" || :
# Where the object of a source lies. Objects of sources that have gone are left out.
while IFS= read -r file; do
  stem=${file%.*}
  case $file in
  *.h | *.def) continue ;;
  hip_backend/*) set -- ${hip:+"$hip/${stem#*/}.o" "$obj/$stem.o" "$obj/$stem.host.o"} ;;
  *) set -- "$obj/$stem.o" ;;
  esac
  for o in "$@"; do [ ! -f "$o" ] || printf '%s %s\n' "$file" "$o"; done
done <"$lists/files" >"$lists/objects"
[ -z "$hip" ] || grep -q '^hip_backend/' "$lists/objects" || { echo "layers: no object of hip_backend was seen: build first"; exit 1; }
sed 's/^[^ ]* //' "$lists/objects" | tr '\n' '\0' | xargs -0 nm -A -P -g >"$lists/symbols"
awk -v table="$table" -v lists="$lists" -v large="$large" '
function fault(text) { print "layers: " text; broken++ }
function room_of(file) { sub(/\/[^\/]*$/, "", file); return file }
# The file that an include of `text` in `file` names: beside it, below src/, below include/, or below the root.
function named(file, text,   path) {
  path = room_of(file) "/" text
  while (sub(/[^\/]+\/\.\.\//, "", path)) continue
  if (path in is_file) return path
  if (("src/" text) in is_file) return "src/" text
  if (("include/" text) in is_file) return "include/" text
  if (text in is_file) return text
  return ""
}
function circle_from(room,   i, n, list) {
  if (state[room] == 2) return
  if (state[room] == 1) { fault("the table has a circle through " room); return }
  state[room] = 1
  n = split(uses[room], list, " ")
  for (i = 1; i <= n; i++) if (list[i] in uses) circle_from(list[i])
  state[room] = 2
}
BEGIN {
  while ((getline line < table) > 0) {
    n = split(line, word, " ")
    if (!n || word[1] ~ /^#/) continue
    if (word[1] == "circle") {
      if (n < 4) fault("the circle of " word[2] " and " word[3] " has no reason")
      allowed[word[2], word[3]] = allowed[word[3], word[2]] = 1; pair[word[2], word[3]] = 1
      continue
    }
    uses[word[1]] = ""
    for (i = 2; i <= n; i++) { may[word[1], word[i]] = 1; uses[word[1]] = uses[word[1]] " " word[i] }
  }
  for (room in uses) {
    n = split(uses[room], word, " ")
    for (i = 1; i <= n; i++) if (!(word[i] in uses) && word[i] != "public" && word[i] != "ref.h" && word[i] != "tests/lib") fault("the table lets " room " use " word[i] ", which is no room")
  }
  for (room in uses) circle_from(room)
  while ((getline line < (lists "/files")) > 0) {
    is_file[line] = 1
    if (line ~ /^(src|ref|python|hip_backend)\// && !(room_of(line) in uses) && !told[room_of(line)]++) fault(room_of(line) " is no room: tools/rooms.txt has no line of it")
  }
  while ((getline line < (lists "/includes")) > 0) {
    split(line, part, ":"); file = part[1]
    text = line; sub(/^[^"]*"/, "", text); sub(/".*/, "", text)
    room = room_of(file); to = named(file, text); includes++
    if (to == "") { fault(file ":" part[2] ": there is no file " text); continue }
    other = room_of(to)
    if (!(room in uses) || other ~ /^(include|formats)/ || other == room || (room, other) in may || (other == "ref" && (room, "ref.h") in may)) continue
    fault(file ":" part[2] ": " room " includes " text ", which tools/rooms.txt does not let it use")
  }
  while ((getline line < (lists "/objects")) > 0) { at = index(line, " "); source[substr(line, at + 1)] = substr(line, 1, at - 1) }
  while ((getline line < (lists "/symbols")) > 0) {
    at = index(line, ": "); file = source[substr(line, 1, at - 1)]
    split(substr(line, at + 2), part, " ")
    if (part[2] == "U") { n_calls++; caller[n_calls] = file; callee[n_calls] = part[1] }
    else if (part[2] ~ /[TDBRCGSVW]/) home[part[1]] = file
  }
  for (i = 1; i <= n_calls; i++) {
    if (!(callee[i] in home)) continue
    file = caller[i]; to = home[callee[i]]; room = room_of(file); other = room_of(to)
    if (to == file) continue
    calls++; call[file, to] = 1
    if (!(room in uses) || room == other || (room, other) in may || (other == "ref" && (room, "ref.h") in may)) continue
    if ((room, "public") in may && other ~ /^src\// && other !~ /^src\/cli/ && callee[i] !~ /^mxi_/) continue
    fault(file ": " room " calls " callee[i] " of " to ", which tools/rooms.txt does not let it use")
  }
  for (both in call) {
    split(both, f, SUBSEP)
    if (room_of(f[1]) == room_of(f[2]) && f[1] < f[2] && (f[2], f[1]) in call && !((f[1], f[2]) in allowed)) fault(f[1] " and " f[2] " call each other")
  }
  for (both in pair) {
    split(both, f, SUBSEP)
    if (!((f[1], f[2]) in call && (f[2], f[1]) in call)) fault(f[1] " and " f[2] " no longer call each other: their line in tools/rooms.txt goes")
  }
  if (!n_calls && !broken) fault("no object was seen: build first")
  if (large) broken++
  if (!broken) print "layers: " includes " includes and " calls " calls between files follow tools/rooms.txt"
  exit broken > 0
}'
