# Every recipe of `mxgold ablate --six` takes less than five seconds of processor time on a layer of MiniLM's size, on one thread.
: "${scratch:?run by tests/run-cli.sh}"
if grep -q __asan_init "$mxgold" || grep -q __ubsan_handle "$mxgold" || grep -q __tsan_init "$mxgold"; then
  echo "cli: ablate-speed: SKIPPED, a sanitizer takes its own time"
else
  within() { (ulimit -t 5 && exec "$@"); } # the system ends what takes more
  for recipe in $(grep -o '^MX_RECIPE("[^"]*' "$root/formats/recipes.def" | cut -d'"' -f2); do
    # attention's output: 384 tokens, 384 features to 384
    accepts within "$mxgold" ablate --six gen:gaussian gen:laplace gen:rows:1.5 --shape 384x384 --threads 1 -p "$recipe"
  done
  [ "$recipe" ] || fail "formats/recipes.def names no recipe"
  # The feed-forward part has four times as many: recipes with one scale a row or a tensor, whose sums are the longest.
  accepts "$mxgold" gen random --shape 384x384 --inputs -o x.mxv
  accepts "$mxgold" gen random --shape 1536x384 --seed 1 --inputs -o w.mxv
  accepts "$mxgold" gen random --shape 384x1536 --seed 2 --inputs -o dy.mxv
  for recipe in recipe-tseng recipe-wang recipe-fp8-tensorwise; do
    accepts within "$mxgold" ablate --six x.mxv:x w.mxv:x dy.mxv:x --threads 1 -p "$recipe"
  done
fi
