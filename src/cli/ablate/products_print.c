/* Prints the tables of --gemm and --six. */
#include <stdio.h>
#include <string.h>

#include "cli/base/out.h"
#include "products.h"

static const char *const names[] = {"X", "W", "DY"};

/* What a product was computed of: each operand's name, values and shape, for a machine; NaN and Inf in it, where there are any. */
static void origin(out *o, const ablate_layers *l, int json) {
  char key[64];
  ablate_say_origin(o, l->specs, l->how->repeats, json);
  for (size_t i = 0; i < l->tensors->n && json; i++) {
    const ablate_tensor *t = &l->tensors->at[i];
    out_text(o, names[i], t->name);
    snprintf(key, sizeof key, "%s_digest", names[i]);
    out_text(o, key, l->digest[i]);
    snprintf(key, sizeof key, "%s_shape", names[i]);
    out_shape(o, key, (uint64_t[]){t->rows, t->cols}, 2);
  }
  if (!l->how->six) out_text(o, "product", "first operand x second operand^T");
  out_text(o, "accumulate", l->how->accum);
  for (size_t i = 0; i < l->tensors->n; i++) {
    snprintf(key, sizeof key, json ? "%s_nan_or_inf" : "NaN and Inf in %s", names[i]);
    if (json || l->bad[i]) out_u64(o, key, l->bad[i]);
  }
}

static void specs_of_operands(out *o, const ablate_layers *l) {
  out_table(o, "specs");
  for (size_t s = 0; s < l->specs->n; s++) {
    mx_spec q[ABLATE_OPERANDS];
    if (ablate_operand_specs(q, l->n_operands, l->how, &l->specs->at[s])) break; /* said before */
    for (int i = 0; i < l->n_operands; i++) {
      char name[3] = {'Q', (char)('1' + i), 0}, keys[4096];
      mx_spec_print(keys, sizeof keys, &q[i], 1);
      out_row(o);
      out_text(o, "preset", l->specs->at[s].label);
      out_text(o, "operand", name);
      out_text(o, "keys", keys);
    }
  }
  out_end(o);
}

static void say_same(out *o, const ablate_layers *l, size_t spec, int json) {
  const size_t same = ablate_layer_same(l, spec);
  char text[600] = "";
  if (same) snprintf(text, sizeof text, "%s%s", json ? "" : "same figures as ", l->specs->at[same - 1].label);
  if (json || same) out_text(o, json ? "same_figures_as" : "note", text);
}

static void product_bias(out *o, const char *key, const mx_product_error *e, int drawn, int json) {
  char text[64];
  if (json && !strcmp(key, "bias")) {
    ablate_say_bias(o, drawn, e->bias, e->bias_low, e->bias_high);
  } else if (json) {
    out_number(o, "both_bias", drawn && e->bias_low > 0 ? e->bias : (double)NAN);
    out_number(o, "both_bias_low", drawn ? e->bias_low : (double)NAN);
    out_number(o, "both_bias_high", drawn ? e->bias_high : (double)NAN);
  } else if (drawn) {
    ablate_bias_text(text, sizeof text, e->bias, e->bias_low, e->bias_high);
    out_text(o, key, text);
  }
}

static void product_rows(out *o, const ablate_layers *l, size_t spec, int json) {
  const ablate_layer *a = &l->at[spec];
  const mx_product_split *s = &a->product[0];
  const int both = ablate_product_drawn(a, 0);
  const struct {
    const char *name;
    const mx_product_error *e;
    int drawn; /* without chance in all that is quantised the bias is the error that no repeat changes */
  } parts[] = {{"first operand alone", &s->x, a->operand[0].drawn},
               {"second operand alone", &s->w, a->operand[1].drawn},
               {"both, binary64 sums", &s->both, both},
               {"sums alone", &s->accumulate, 0},
               {"all", &s->total, both}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    out_row(o);
    out_text(o, "preset", l->specs->at[spec].label);
    out_text(o, "product", ablate_product_name(l, 0));
    out_text(o, "quantised", parts[i].name);
    if (isnan(parts[i].e->relative) && !json)
      out_text(o, "relative error", "none left");
    else
      out_figure(o, json ? "relative_error" : "relative error", parts[i].e->relative, "%.3e", json);
    out_figure(o, "gain", parts[i].e->gain, "%.5f", json);
    out_figure(o, json ? "one_minus_cos" : "1-cos", parts[i].e->cosine >= 1 ? 0 : 1 - parts[i].e->cosine, "%.1e", json);
    product_bias(o, "bias", parts[i].e, parts[i].drawn, json);
    if (json || s->total.left_out) out_u64(o, json ? "left_out" : "NaN, left out", parts[i].e->left_out);
    say_same(o, l, spec, json);
  }
}

/* Of what is left of an operand. */
static void left_figure(out *o, const char *key, const ablate_operand *a, double figure, const char *format, int json) {
  if (!a->sums.n && !json)
    out_text(o, key, "none left");
  else
    out_figure(o, key, a->sums.n ? figure : (double)NAN, format, json);
}

static void operand_bias(out *o, const ablate_operand *a, int json) {
  char text[64];
  if (json) {
    ablate_say_bias(o, a->drawn && a->sums.n, a->bias, a->bias_low, a->bias_high);
  } else if (a->drawn && a->sums.n) {
    ablate_bias_text(text, sizeof text, a->bias, a->bias_low, a->bias_high);
    out_text(o, "bias", text);
  } else if (a->drawn) {
    left_figure(o, "bias", a, a->bias, "%.4f", 0);
  }
}

static void operand_rows(out *o, const ablate_layers *l, size_t spec, int json) {
  static const char *const of[] = {"Q1 X along I", "Q2 W along I", "Q3 dY along O", "Q4 W^T along O", "Q5 dY^T along T", "Q6 X^T along T"};
  for (int i = 0; i < ABLATE_OPERANDS; i++) {
    const ablate_operand *a = &l->at[spec].operand[i];
    const mx_product_split *s = &l->at[spec].product[i / 2];
    const mx_product_error *own = i % 2 ? &s->w : &s->x;
    const int drawn = ablate_product_drawn(&l->at[spec], i / 2);
    out_row(o);
    out_text(o, "preset", l->specs->at[spec].label);
    out_text(o, "product", ablate_product_name(l, i / 2));
    out_text(o, "operand", of[i]);
    left_figure(o, json ? "sqnr_db" : "SQNR dB", a, mx_sqnr(&a->sums), "%.3f", json);
    left_figure(o, "gain", a, mx_gain(&a->sums), "%.4f", json);
    out_figure(o, json ? "saturated_percent" : "saturated %", a->n_codes ? 100 * (double)a->saturated / (double)a->n_codes : 0, "%.3f", json);
    left_figure(o, json ? "underflow_percent" : "underflow %", a, 100 * (double)a->sums.n_underflow / (double)a->sums.n, "%.3f", json);
    out_figure(o, json ? "product_error" : "product error", own->relative, "%.4f", json);
    out_figure(o, json ? "both_error" : "both error", s->total.relative, "%.4f", json);
    out_figure(o, json ? "both_gain" : "both gain", s->total.gain, "%.4f", json);
    operand_bias(o, a, json);
    product_bias(o, "both bias", &s->total, drawn, json);
    const uint64_t spoiled = a->sums.n_spoiled / (uint64_t)a->repeats;
    if (json || spoiled || s->total.left_out) {
      out_u64(o, "spoiled", spoiled);
      out_u64(o, json ? "left_out" : "NaN, left out", s->total.left_out);
    }
    say_same(o, l, spec, json);
  }
}

/* Keys of recipes that are of training a layer over many steps, and of no single product. */
static void training_keys(out *o, const ablate_specs *specs, int json) {
  size_t n = 0;
  for (size_t s = 0; s < specs->n; s++) n += specs->at[s].recipe && *specs->at[s].recipe->train;
  if (!n && !json) return;
  out_table(o, json ? "training_keys_ignored" : "training keys");
  for (size_t s = 0; s < specs->n; s++) {
    const mx_recipe *r = specs->at[s].recipe;
    if (!r || !*r->train) continue;
    out_row(o);
    out_text(o, "preset", specs->at[s].label);
    out_text(o, json ? "keys" : "training keys that --six leaves out", r->train);
  }
  out_end(o);
}

out *ablate_layers_document(const ablate_layers *l, int json) {
  out *o = out_new();
  origin(o, l, json);
  out_table(o, l->how->six ? "operands" : "error");
  for (size_t s = 0; s < l->specs->n; s++) (l->how->six ? operand_rows : product_rows)(o, l, s, json);
  out_end(o);
  if (json) specs_of_operands(o, l);
  ablate_say_left_out(o, l->specs, json);
  if (l->how->six) training_keys(o, l->specs, json);
  return o;
}
