/* Declares trees of additions: read from masks, evaluated with mx_mma node by node. */
#ifndef MX_VERIFY_PROBE_TREE_H
#define MX_VERIFY_PROBE_TREE_H

#include "verify/probe/fit.h"

/* Leaves 0 .. K-1 are products, leaf K is C; node K+1+i has children child[first[i]] .. child[first[i+1]-1]. The last node is the root. */
typedef struct probe_tree {
  int n_leaves, n_nodes;
  int *first, *child;
} probe_tree;

enum { PROBE_TREE_MAX = 257 };

/* The tree that the masks describe, its sums rounded to nearest or toward zero. 0: they describe none, or some are missing. */
int mxi_probe_tree_read(probe_tree *t, const probe_list *l);
void mxi_probe_tree_free(probe_tree *t);
/* "((0+1)+(2+3))+c", malloc'ed; NULL if memory ran out. */
char *mxi_probe_tree_text(const probe_tree *t);
/* The most products that one node adds. */
int mxi_probe_tree_widest(const probe_tree *t);
/* A name for it if it has one; NULL. */
const char *mxi_probe_tree_name(const probe_tree *t);
/* If both children of node i (counted from 0) are products, exchange them. */
int mxi_probe_tree_exchange(probe_tree *t, int i);
int mxi_probe_tree_is_binary(const probe_tree *t);

/* How nodes add. */
typedef struct probe_tree_rule {
  int round; /* MX_ACC_OUT_*: of every sum, and of products that are rounded */
  int fused; /* a product is added to a sum unrounded (fma); of two products the second child */
  const char *text;
} probe_tree_rule;
extern const probe_tree_rule mxi_probe_tree_rules[];
extern const size_t mxi_probe_tree_n_rules;

/* Outputs of l that the tree gets wrong, any NaN being any other; SIZE_MAX: these types have no such tree. */
size_t mxi_probe_tree_wrong(const probe_tree *t, const probe_tree_rule *r, const probe_list *l, size_t bound, size_t *first_wrong,
                            uint64_t *expected);

#endif
