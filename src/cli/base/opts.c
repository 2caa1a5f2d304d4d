/* Parses the options of a command by its table. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opts.h"

const cli_option cli_common_options[] = {
    {"verbose", 'v', CLI_FLAG, offsetof(cli_context, verbose), NULL, "show what is being done, with progress and rate", NULL},
    {"sync", 0, CLI_FLAG, offsetof(cli_context, sync), NULL,
     "write outputs to the disk before they get their names (fsync), as with MXGOLD_SYNC=1", NULL},
    {"isa-off", 0, CLI_STRING, offsetof(cli_context, isa_off), "NAMES",
     "instruction sets not to use: amx, avx512 (also switches off amx), avx2 (also both of these), neon, all; no bit depends on them", NULL},
    {0},
};

typedef struct parser {
  const cli_entry *entry;
  int argc, at;
  char **argv;
  cli_context *common;
  void *args;
  const cli_option *position; /* where the search for the next position goes on */
  int *help;
} parser;

int opts_is_position(const cli_option *o) { return o->kind >= CLI_POS; }

int opts_lists_choices(const cli_option *o) {
  enum { MANY = 40 };
  if (!o->choices) return 0;
  for (size_t i = 0; i < MANY; i++)
    if (!o->choices(i)) return 1;
  return 0;
}

static int append(cli_list *list, const char *value) {
  const char **items = realloc(list->items, (list->n + 1) * sizeof *items);
  if (!items) return cli_error("out of memory");
  items[list->n++] = value;
  list->items = items;
  return CLI_FINE;
}

static const char *choice_at(const void *option, size_t index) { return ((const cli_option *)option)->choices(index); }

static int is_choice(const cli_option *o, const char *value) {
  const char *word;
  for (size_t i = 0; (word = o->choices(i)); i++)
    if (!strcmp(word, value)) return 1;
  return 0;
}

static int bad_number(const parser *p, const cli_option *o, const char *value, const char *expected) {
  return cli_error("%s: --%s %s: not a number, expected %s", p->entry->name, o->name, value, expected);
}

/* strtoull() takes "-1" and " 1": a number here is all of the text, nothing else. */
static int starts_number(const char *s, int sign) {
  if (sign && (*s == '-' || *s == '+')) s++;
  return *s >= '0' && *s <= '9';
}

static int set_u64(const parser *p, const cli_option *o, cli_u64 *out, const char *value) {
  char *end;
  errno = 0;
  out->v = strtoull(value, &end, 0);
  if (!starts_number(value, 0) || *end || errno) return bad_number(p, o, value, "an integer from 0 to 2^64 - 1");
  out->given = 1;
  return CLI_FINE;
}

static int set_i64(const parser *p, const cli_option *o, cli_i64 *out, const char *value) {
  char *end;
  errno = 0;
  out->v = strtoll(value, &end, 0);
  if (!starts_number(value, 1) || *end || errno) return bad_number(p, o, value, "an integer");
  out->given = 1;
  return CLI_FINE;
}

static int set_f32(const parser *p, const cli_option *o, cli_f32 *out, const char *value) {
  char *end;
  errno = 0;
  out->v = strtof(value, &end);
  if (!*value || *end || *value == ' ') return bad_number(p, o, value, "a decimal or hexadecimal floating-point number");
  if (errno == ERANGE && out->v == 0)
    return cli_error("%s: --%s %s: below the smallest binary32 above 0, 1.4e-45", p->entry->name, o->name, value);
  if (errno == ERANGE && isinf(out->v)) return cli_error("%s: --%s %s: beyond the largest binary32, 3.4e38", p->entry->name, o->name, value);
  out->given = 1;
  return CLI_FINE;
}

static int set_f64(const parser *p, const cli_option *o, cli_f64 *out, const char *value) {
  char *end;
  out->v = strtod(value, &end);
  if (!*value || *end || *value == ' ') return bad_number(p, o, value, "a decimal or hexadecimal floating-point number");
  out->given = 1;
  return CLI_FINE;
}

static int set(const parser *p, const cli_option *o, void *base, const char *value) {
  if (o->choices && !is_choice(o, value)) {
    char what[64];
    snprintf(what, sizeof what, opts_is_position(o) ? "%s" : "--%s", o->name);
    return cli_unknown(p->entry->name, what, value, choice_at, o);
  }
  void *field = (char *)base + o->offset;
  switch (o->kind) {
  case CLI_FLAG:
    *(int *)field = 1;
    return CLI_FINE;
  case CLI_STRING:
  case CLI_POS:
  case CLI_POS_OPT:
    *(const char **)field = value;
    return CLI_FINE;
  case CLI_LIST:
  case CLI_POS_LIST:
    return append(field, value);
  case CLI_U64:
    return set_u64(p, o, field, value);
  case CLI_I64:
    return set_i64(p, o, field, value);
  case CLI_F32:
    return set_f32(p, o, field, value);
  case CLI_F64:
    return set_f64(p, o, field, value);
  }
  return CLI_TROUBLE;
}

/* The option by name or letter in one of the two tables; *base is the struct it goes to. */
static const cli_option *find(const parser *p, const char *name, size_t n, char letter, void **base) {
  const cli_option *tables[] = {p->entry->command->options, cli_common_options};
  void *bases[] = {p->args, p->common};
  for (int t = 0; t < 2; t++)
    for (const cli_option *o = tables[t]; o->name; o++) {
      if (opts_is_position(o)) continue;
      if (letter ? o->letter != letter : strncmp(o->name, name, n) || o->name[n]) continue;
      *base = bases[t];
      return o;
    }
  return NULL;
}

static const char *option_at(const void *entry, size_t index) {
  const cli_option *tables[] = {((const cli_entry *)entry)->command->options, cli_common_options};
  for (int t = 0; t < 2; t++)
    for (const cli_option *o = tables[t]; o->name; o++)
      if (!opts_is_position(o) && index-- == 0) return o->name;
  return NULL;
}

static int unknown_option(const parser *p, const char *name, size_t n) {
  char near[160], dashed[200] = "";
  int len = (int)(n < 64 ? n : 64);
  char asked[65];
  snprintf(asked, sizeof asked, "%.*s", len, name);
  mx_nearest(near, sizeof near, asked, option_at, p->entry);
  size_t used = 0;
  for (char *save = NULL, *word = strtok_r(near, ", ", &save); word && used < sizeof dashed - 1; word = strtok_r(NULL, ", ", &save))
    used += (size_t)snprintf(dashed + used, sizeof dashed - used, "%s--%s", used ? ", " : "", word);
  return cli_error("%s: option '--%s' is unknown, nearest: %s", p->entry->name, asked, dashed);
}

static int take_option(parser *p, const cli_option *o, void *base, const char *value) {
  if (o->kind == CLI_FLAG && value) return cli_error("%s: --%s takes no value", p->entry->name, o->name);
  if (o->kind != CLI_FLAG && !value) {
    /* A value may begin with one dash (-3, or - for standard output), but not with two: then the value was forgotten. */
    if (p->at == p->argc || !strncmp(p->argv[p->at], "--", 2))
      return cli_error("%s: --%s: no value, expected %s", p->entry->name, o->name, o->value);
    value = p->argv[p->at++];
  }
  return set(p, o, base, value);
}

static int take_long(parser *p, const char *arg) {
  const char *value = strchr(arg, '=');
  size_t n = value ? (size_t)(value - arg) : strlen(arg);
  void *base;
  const cli_option *o = find(p, arg, n, 0, &base);
  if (o) return take_option(p, o, base, value ? value + 1 : NULL);
  if (!strcmp(arg, "help")) {
    *p->help = 1;
    return CLI_FINE;
  }
  return unknown_option(p, arg, n);
}

static int take_short(parser *p, const char *arg) {
  void *base;
  const cli_option *o = find(p, NULL, 0, arg[0], &base);
  if (o) {
    if (o->kind == CLI_FLAG && arg[1]) return cli_error("%s: -%s: one letter after a dash, expected -%c", p->entry->name, arg, *arg);
    return take_option(p, o, base, arg[1] ? arg + 1 : NULL);
  }
  if (!strcmp(arg, "h")) {
    *p->help = 1;
    return CLI_FINE;
  }
  return cli_error("%s: option '-%s' is unknown, see mxgold help %s", p->entry->name, arg, p->entry->name);
}

static int take_position(parser *p, const char *arg) {
  while (p->position->name && !opts_is_position(p->position)) p->position++;
  if (!p->position->name)
    return cli_error("%s: '%s' is one argument too many, expected mxgold %s %s", p->entry->name, arg, p->entry->name, p->entry->synopsis);
  const cli_option *o = p->position;
  if (o->kind != CLI_POS_LIST) p->position++;
  return set(p, o, p->args, arg);
}

static int check_required(const parser *p) {
  for (const cli_option *o = p->position; o->name; o++)
    if (o->kind == CLI_POS) return cli_error("%s: no %s, expected mxgold %s %s", p->entry->name, o->name, p->entry->name, p->entry->synopsis);
  return CLI_FINE;
}

int opts_parse(const cli_entry *entry, int argc, char **argv, cli_context *common, void *args, int *help) {
  parser p = {entry, argc, 0, argv, common, args, entry->command->options, help};
  int only_positions = 0;
  *help = 0;
  while (p.at < argc) {
    const char *arg = argv[p.at++];
    int rc;
    if (!only_positions && !strcmp(arg, "--")) {
      only_positions = 1;
      continue;
    }
    if (only_positions || arg[0] != '-' || !arg[1])
      rc = take_position(&p, arg);
    else
      rc = arg[1] == '-' ? take_long(&p, arg + 2) : take_short(&p, arg + 1);
    if (rc || *help) return rc;
  }
  return check_required(&p);
}

void opts_free(const cli_option *table, void *args) {
  for (const cli_option *o = table; o->name; o++)
    if (o->kind == CLI_LIST || o->kind == CLI_POS_LIST) free(((cli_list *)((char *)args + o->offset))->items);
}
