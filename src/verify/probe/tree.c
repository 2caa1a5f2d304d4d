/* Reads the order of additions as FPRev does (arXiv 2411.00442): +2^m at i and -2^m at j swallow every unit that is added to them before they
 * meet. The units that are left are the leaves outside the smallest subtree that has both. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/probe/tree.h"

/* size[i][j]: leaves of the smallest subtree with i and j; 0: unknown. */
static int sizes_of(int *size, const probe_list *l, int n) {
  const mx_format *d = l->spec->d;
  memset(size, 0, (size_t)(n * n) * sizeof *size);
  for (size_t i = 0; i < l->n; i++) {
    const int32_t *q = l->labels[i];
    if (q[0] != PROBE_MASK || q[1] < 0 || q[2] <= q[1] || q[2] >= n) continue;
    const double left = ldexp(mx_decode(d, mxi_probe_bits(l->d, l->d_bytes, i)), -q[3]);
    if (!(left >= 0 && left <= n - 2 && left == rint(left))) return 0;
    size[q[1] * n + q[2]] = size[q[2] * n + q[1]] = n - (int)left;
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++)
      if (!size[i * n + j]) return 0;
  return 1;
}

typedef struct builder {
  probe_tree *t;
  const int *size;
  int n, n_child, ok;
  shortage *lack; /* of the call */
} builder;

static int new_node(builder *b, const int *children, int n) {
  probe_tree *t = b->t;
  if (t->n_nodes >= b->n || b->n_child + n > 2 * b->n) {
    b->ok = 0;
    return 0;
  }
  memcpy(t->child + b->n_child, children, (size_t)n * sizeof *children);
  b->n_child += n;
  t->first[++t->n_nodes] = b->n_child;
  return b->n + t->n_nodes - 1;
}

/* Builds the subtree of leaves set[0 .. n-1]; set is used up. Returns its node. */
static int build(builder *b, int *set, int n) {
  int at = set[0], leaf = set[0], done = 1;
  int *left = noted(malloc((size_t)n * 3 * sizeof *left), b->lack);
  if (!left) b->ok = 0;
  if (!b->ok) {
    free(left);
    return 0;
  }
  int *children = left + n, *part = left + 2 * n, n_left = n - 1;
  memcpy(left, set + 1, (size_t)(n - 1) * sizeof *left);
  while (n_left && b->ok) {
    int least = b->n + 1, n_children = 1;
    for (int i = 0; i < n_left; i++)
      if (b->size[leaf * b->n + left[i]] < least) least = b->size[leaf * b->n + left[i]];
    children[0] = at;
    /* the leaves that meet `leaf` at this node, one child after the other */
    for (int i = 0; i < n_left && b->ok;) {
      if (b->size[leaf * b->n + left[i]] != least) {
        i++;
        continue;
      }
      const int head = left[i];
      int n_part = 0, kept = 0;
      for (int q = 0; q < n_left; q++) {
        const int in = left[q] == head || (b->size[leaf * b->n + left[q]] == least && b->size[head * b->n + left[q]] < least);
        if (in)
          part[n_part++] = left[q];
        else
          left[kept++] = left[q];
      }
      n_left = kept;
      done += n_part;
      children[n_children++] = n_part == 1 ? part[0] : build(b, part, n_part);
      i = 0;
    }
    if (done != least) b->ok = 0;
    if (b->ok) at = new_node(b, children, n_children);
  }
  free(left);
  return at;
}

/* Leaves under a node, in the order of its children; their count. */
static int leaves_of(const probe_tree *t, int node, int *out) {
  if (node < t->n_leaves) {
    *out = node;
    return 1;
  }
  int n = 0;
  for (int c = t->first[node - t->n_leaves]; c < t->first[node - t->n_leaves + 1]; c++) n += leaves_of(t, t->child[c], out + n);
  return n;
}

/* Does the tree say of every pair what the masks said? */
static int agrees(const probe_tree *t, const int *size, shortage *lack) {
  const int n = t->n_leaves;
  int *leaves = noted(malloc((size_t)n * sizeof *leaves), lack), *from = noted(malloc((size_t)n * sizeof *from), lack), ok = leaves && from;
  for (int node = 0; node < t->n_nodes && ok; node++) {
    int count = 0;
    for (int c = t->first[node]; c < t->first[node + 1]; c++) {
      const int more = leaves_of(t, t->child[c], leaves + count);
      for (int i = 0; i < more; i++) from[count + i] = c;
      count += more;
    }
    for (int i = 0; i < count; i++)
      for (int j = 0; j < i; j++)
        if (from[i] != from[j] && size[leaves[i] * n + leaves[j]] != count) ok = 0;
  }
  free(leaves);
  free(from);
  return ok;
}

/* --- sums that are rounded toward zero --- */

/* steps[i][j], i < j: additions to j before it meets i; -1: unknown. */
static int steps_of(int *steps, const probe_list *l, int n) {
  const mx_probe_spec *s = l->spec;
  for (int i = 0; i < n * n; i++) steps[i] = -1;
  for (size_t p = 0; p < l->n; p++) {
    const int32_t *q = l->labels[p];
    if (q[0] != PROBE_MASK || q[1] < 0 || q[2] <= q[1] || q[2] >= n) continue;
    const double large = mx_decode(s->a, mxi_probe_code(s->a, l->a + p * l->a_bytes, (size_t)q[1])) *
                         mx_decode(s->b, mxi_probe_code(s->b, l->b + p * l->b_bytes, (size_t)q[1]));
    const double d = mx_decode(s->d, mxi_probe_bits(l->d, l->d_bytes, p)), units = ldexp(d, -q[3]),
                 places = ldexp(d / large, s->d->man_bits + 1);
    if (units >= 0 && units <= n - 2 && units == rint(units))
      steps[q[1] * n + q[2]] = 0;
    else if (places >= 1 && places <= n - 2 && places == rint(places))
      steps[q[1] * n + q[2]] = (int)places;
    else
      return 0;
  }
  for (int j = 0; j < n; j++)
    for (int i = 0; i < j; i++)
      if (steps[i * n + j] < 0) return 0;
  return 1;
}

/* Builds the subtree of leaves set[0 .. n-1], ascending; set gets another order. The way up from the last leaf says which leaves join it at each
 * step. */
static int build_up(builder *b, const int *steps, int *set, int n) {
  const int last = set[n - 1];
  int at = last, done = 0, least = last;
  int *part = noted(malloc((size_t)n * sizeof *part), b->lack);
  if (!part) b->ok = 0;
  for (int step = 0; b->ok && done < n - 1; step++) {
    int n_part = 0;
    for (int i = 0; i < n - 1; i++)
      if (steps[set[i] * b->n + last] == step) part[n_part++] = set[i];
    if (!n_part) b->ok = 0;
    if (!b->ok) break;
    done += n_part;
    const int head = part[0], with = n_part == 1 ? head : build_up(b, steps, part, n_part);
    const int children[2] = {head < least ? with : at, head < least ? at : with}; /* who has the first leaf */
    if (b->ok) at = new_node(b, children, 2);
    if (head < least) least = head;
  }
  free(part);
  return at;
}

/* Does the tree say of every pair how many additions there are? */
static int agrees_on_steps(const probe_tree *t, const int *steps, shortage *lack) {
  const int n = t->n_leaves, all = n + t->n_nodes;
  int *parent = noted(malloc((size_t)all * sizeof *parent), lack), *seen = noted(calloc((size_t)all, sizeof *seen), lack), ok = parent && seen;
  if (ok) parent[all - 1] = -1;
  for (int node = 0; ok && node < t->n_nodes; node++)
    for (int c = t->first[node]; c < t->first[node + 1]; c++) parent[t->child[c]] = n + node;
  for (int i = 0; ok && i < n; i++) {
    for (int x = i; x >= 0; x = parent[x]) seen[x] = i + 1;
    for (int j = i + 1; j < n; j++) {
      int count = 0;
      for (int x = parent[j]; seen[x] != i + 1; x = parent[x]) count++;
      if (count != steps[i * n + j]) ok = 0;
    }
  }
  free(parent);
  free(seen);
  return ok;
}

static int read_steps(builder *b, int *steps, int *set, const probe_list *l) {
  b->ok = steps_of(steps, l, b->n);
  b->n_child = b->t->n_nodes = 0;
  for (int i = 0; i < b->n; i++) set[i] = i;
  if (b->ok) build_up(b, steps, set, b->n);
  return b->ok && b->t->n_nodes == b->n - 1 && agrees_on_steps(b->t, steps, l->lack);
}

int mxi_probe_tree_read(probe_tree *t, const probe_list *l) {
  const int n = (int)l->spec->K + 1;
  memset(t, 0, sizeof *t);
  if (n > PROBE_TREE_MAX || l->spec->d->kind == MX_KIND_INT) return 0;
  int *size = noted(malloc((size_t)(n * n) * sizeof *size), l->lack), *set = noted(malloc((size_t)n * sizeof *set), l->lack);
  t->n_leaves = n;
  t->first = noted(calloc((size_t)n + 2, sizeof *t->first), l->lack);
  t->child = noted(calloc((size_t)(2 * n) + 2, sizeof *t->child), l->lack);
  const int memory = size && set && t->first && t->child;
  builder b = {t, size, n, 0, memory && sizes_of(size, l, n), l->lack};
  if (b.ok) {
    for (int i = 0; i < n; i++) set[i] = i;
    build(&b, set, n);
    b.ok = b.ok && agrees(t, size, l->lack);
  }
  if (memory && !b.ok) b.ok = read_steps(&b, size, set, l);
  free(size);
  free(set);
  if (!b.ok) mxi_probe_tree_free(t);
  return b.ok;
}

void mxi_probe_tree_free(probe_tree *t) {
  free(t->first);
  free(t->child);
  memset(t, 0, sizeof *t);
}

/* --- as text --- */

typedef struct text {
  char *p;
  size_t used, room;
} text;

static void put(text *t, const char *s) {
  for (; *s && t->used + 1 < t->room; s++) t->p[t->used++] = *s;
  t->p[t->used] = 0;
}

static void write_node(text *o, const probe_tree *t, int node, int outer) {
  char number[16];
  if (node < t->n_leaves) {
    snprintf(number, sizeof number, "%d", node);
    put(o, node == t->n_leaves - 1 ? "c" : number);
    return;
  }
  if (!outer) put(o, "(");
  for (int c = t->first[node - t->n_leaves]; c < t->first[node - t->n_leaves + 1]; c++) {
    if (c > t->first[node - t->n_leaves]) put(o, "+");
    write_node(o, t, t->child[c], 0);
  }
  if (!outer) put(o, ")");
}

char *mxi_probe_tree_text(const probe_tree *t) {
  text o = {.room = (size_t)t->n_leaves * 12 + 16};
  o.p = malloc(o.room);
  if (o.p) {
    *o.p = 0;
    write_node(&o, t, t->n_leaves + t->n_nodes - 1, 1);
  }
  return o.p;
}

int mxi_probe_tree_exchange(probe_tree *t, int i) {
  int *child = t->child + t->first[i], swap = child[0];
  if (t->first[i + 1] - t->first[i] != 2 || child[0] >= t->n_leaves - 1 || child[1] >= t->n_leaves - 1) return 0;
  child[0] = child[1];
  child[1] = swap;
  return 1;
}

int mxi_probe_tree_is_binary(const probe_tree *t) {
  for (int i = 0; i < t->n_nodes; i++)
    if (t->first[i + 1] - t->first[i] != 2) return 0;
  return 1;
}

static int is_leaf(const probe_tree *t, int node) { return node < t->n_leaves; }

int mxi_probe_tree_widest(const probe_tree *t) {
  int widest = 0;
  for (int i = 0; i < t->n_nodes; i++) {
    int products = 0;
    for (int j = t->first[i]; j < t->first[i + 1]; j++) products += t->child[j] < t->n_leaves - 1; /* the last leaf is C */
    if (products > widest) widest = products;
  }
  return widest;
}

/* Leaves in the order in which a chain adds them; 0 if the tree is not a chain. */
static int chain(const probe_tree *t, int *order) {
  int n = t->n_leaves;
  for (int node = t->n_nodes - 1; node >= 0; node--) {
    const int x = t->child[t->first[node]], y = t->child[t->first[node] + 1];
    const int down = is_leaf(t, x) ? y : x, leaf = is_leaf(t, x) ? x : y;
    if (!is_leaf(t, leaf)) return 0;
    order[--n] = leaf;
    if (is_leaf(t, down)) {
      order[--n] = down;
      return n == 0 && node == 0;
    }
    if (down != t->n_leaves + node - 1) return 0;
  }
  return 0;
}

/* Halves of halves of `n` products from `from` on, in order. */
static int halves(const probe_tree *t, int node, int from, int n) {
  if (n == 1) return node == from;
  if (is_leaf(t, node)) return 0;
  const int x = t->child[t->first[node - t->n_leaves]], y = t->child[t->first[node - t->n_leaves] + 1];
  if (n == 2 && x == from + 1) return y == from;
  return halves(t, x, from, n / 2) && halves(t, y, from + n / 2, n - n / 2);
}

const char *mxi_probe_tree_name(const probe_tree *t) {
  const int K = t->n_leaves - 1;
  int order[PROBE_TREE_MAX], up = 1, down = 1;
  if (!mxi_probe_tree_is_binary(t)) return NULL;
  if (chain(t, order)) {
    const int c_first = order[0] == K || order[1] == K, c_last = order[K] == K;
    int products[PROBE_TREE_MAX] = {0}, n = 0;
    for (int i = 0; i <= K; i++)
      if (order[i] != K) products[n++] = order[i];
    for (int i = 2; i < n; i++) up &= products[i] == i, down &= products[i] == K - 1 - i; /* the first two are one sum */
    up &= c_first ? products[0] == 0 || products[0] == 1 : products[0] + products[1] == 1;
    down &= products[0] >= K - 2 && products[1] >= K - 2;
    if (up && c_first) return "sequential, C first";
    if (up && c_last) return "sequential, C last";
    if (down && c_first) return "sequential from the end, C first";
    if (down && c_last) return "sequential from the end, C last";
    return "a chain in another order";
  }
  const int root = t->n_leaves + t->n_nodes - 1, x = t->child[t->first[root - t->n_leaves]], y = t->child[t->first[root - t->n_leaves] + 1];
  if ((x == K && halves(t, y, 0, K)) || (y == K && halves(t, x, 0, K))) return "pairwise, C last";
  return NULL;
}
