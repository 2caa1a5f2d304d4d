/* Runs mxgold train CONFIG.json -o RUN/: trains a model under a recipe of quantisation, bit for bit reproducible. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/out.h"
#include "cli/base/progress.h"
#include "cli/base/stop.h"
#include "mxgold/ablate.h"
#include "mxgold/linear.h"
#include "mxgold/train.h"

struct args {
  const char *config, *out, *init, *gradients, *digests, *compare;
  cli_list set;
  cli_u64 threads;
  int resume, list, json;
};

static const char *digest_words(size_t index) {
  static const char *const words[] = {"steps", "all", NULL};
  return words[index];
}

static const cli_option options[] = {
    {"CONFIG.json", 0, CLI_POS_OPT, offsetof(struct args, config), NULL,
     "the configuration: sections model, data, train, optimizer, schedule, quant", NULL},
    {"output", 'o', CLI_STRING, offsetof(struct args, out), "RUN",
     "the run's folder: config.json, metrics.jsonl, digests.txt, model and state.safetensors", NULL},
    {"set", 0, CLI_LIST, offsetof(struct args, set), "KEY=VALUE", "set a key of the configuration, such as train.steps=5; may be repeated",
     NULL},
    {"init", 0, CLI_STRING, offsetof(struct args, init), "W.safetensors", "begin with these parameters", NULL},
    {"gradients", 0, CLI_STRING, offsetof(struct args, gradients), "G.safetensors", "write the gradients of the last step, before clipping",
     NULL},
    {"resume", 0, CLI_FLAG, offsetof(struct args, resume), NULL, "continue from the state in the run's folder, if there is one", NULL},
    {"digests", 0, CLI_STRING, offsetof(struct args, digests), "WHICH",
     "steps: one digest of all parameters per step (default); all: one of each parameter, activation and gradient, in the order in which they "
     "are computed",
     digest_words},
    {"compare", 0, CLI_STRING, offsetof(struct args, compare), "RUN_A",
     "print the first step in which the digests of RUN_A and of the run given in place of CONFIG.json differ", NULL},
    {"threads", 0, CLI_U64, offsetof(struct args, threads), "N", "threads to use; all processors by default", NULL},
    {"list", 0, CLI_FLAG, offsetof(struct args, list), NULL,
     "print the keys of a configuration, models, optimisers, schedules, recipes and training keys with their sources", NULL},
    {"json", 0, CLI_FLAG, offsetof(struct args, json), NULL, "print the result, or the list, as JSON", NULL},
    {0},
};

typedef struct progress_line {
  double began, shown;
  uint64_t first;
  int terminal, any;
} progress_line;

/* Shows a bar, the loss, the steps a second and the time left: at most ten times a second, and on a terminal alone. */
static void report(void *self, const mx_train_step *s) {
  progress_line *p = self;
  const double at = progress_clock();
  if (!p->any) p->any = 1, p->first = s->step, p->began = at;
  if (!p->terminal || (at - p->shown < .1 && s->step + 1 < s->steps)) return;
  p->shown = at;
  const uint64_t done = s->step + 1;
  const double rate = at > p->began ? (double)(s->step - p->first) / (at - p->began) : 0;
  char left[PROGRESS_TIME];
  progress_bar(done, s->steps, "step %" PRIu64 " of %" PRIu64 "  loss %.4f  %.3g steps/s  %s left", done, s->steps, s->loss, rate,
               progress_time(left, rate > 0 ? (double)(s->steps - done) / rate : -1));
}

static void warn(void *self, const char *keys) {
  (void)self;
  fprintf(stderr, "mxgold: warning: on, but without any effect in the first step: %s\n", keys);
}

/* What the choices of a key are, and where they come from. */
typedef struct listed {
  const char *name, *what, *source;
} listed;

static const listed models[] = {
    {"llama", "RMSNorm, rotary positions, SwiGLU, no biases", "arXiv 2302.13971; Hugging Face's LlamaForCausalLM"},
    {"gpt2", "LayerNorm, learned positions, GELU, biases, tied head", "GPT-2 (2019); Hugging Face's GPT2LMHeadModel"},
    {"byte_mlp", "embeddings of the last bytes side by side, three linears with ReLU, an FP32 output layer", ""},
    {"gaussian", "one linear on normal numbers, squared error", "arXiv 2509.17791"},
    {"digits", "hidden layers with ReLU on pictures of digits, cross-entropy", "UCI, optical recognition of handwritten digits"},
    {"diffusion", "predicts the noise of points in the plane", "arXiv 2006.11239, in two dimensions"},
    {0},
};
static const listed optimisers[] = {
    {"adamw", "Adam with decoupled weight decay, as PyTorch computes it", "arXiv 1711.05101"},
    {"adam", "Adam, weight decay in the gradient", "arXiv 1412.6980"},
    {"sgd", "gradient descent with momentum", "PyTorch's SGD"},
    {"stablespam", "Adam with clipped spikes, normalised gradients and resets of the moments", "arXiv 2502.17055"},
    {0},
};
static const listed schedules[] = {
    {"constant", "the rate, after a warm-up", ""},
    {"linear", "lr * min(1, t / warmup) * (1 - t / steps) + min_lr", ""},
    {"cosine", "from lr to min_lr by half a cosine, after a warm-up", "arXiv 1608.03983"},
    {0},
};

static void list_choices(out *o, const char *table, const char *column, const listed *rows) {
  out_table(o, table);
  for (; rows->name; rows++) {
    out_row(o);
    out_text(o, column, rows->name);
    out_text(o, "what", rows->what);
    out_text(o, "source", rows->source);
  }
  out_end(o);
}

static int list_all(int json) {
  out *o = out_new();
  out_table(o, json ? "keys" : "keys of a configuration");
  for (size_t i = 0; mx_config_key_at(i); i++) {
    const mx_config_key *k = mx_config_key_at(i);
    out_row(o);
    out_text(o, "key", k->name);
    out_text(o, "values", k->choices ? k->choices : k->fallback ? k->fallback : "");
    out_text(o, "meaning", k->doc);
    out_text(o, "source", k->source);
  }
  out_end(o);
  list_choices(o, "models", "model", models);
  list_choices(o, "optimisers", "optimiser", optimisers);
  list_choices(o, "schedules", "schedule", schedules);
  out_table(o, "recipes");
  for (size_t i = 0; mx_recipe_at(i); i++) {
    out_row(o);
    out_text(o, "recipe", mx_recipe_at(i)->name);
    out_text(o, "source", mx_recipe_at(i)->source);
  }
  out_end(o);
  out_table(o, json ? "training_keys" : "training keys (quant.train)");
  for (size_t i = 0; mx_train_key_at(i); i++) {
    const mx_train_key *k = mx_train_key_at(i);
    char number[32];
    snprintf(number, sizeof number, "%.9g", k->fallback);
    out_row(o);
    out_text(o, "key", k->name);
    out_text(o, "values", k->choices ? k->choices : number);
    out_text(o, "meaning", k->doc);
    out_text(o, "source", k->source);
  }
  out_end(o);
  return out_print(o, json);
}

static int compare(const struct args *a) {
  uint64_t step;
  char name[96];
  mx_error err;
  if (!a->config) return cli_error("train: --compare RUN_A RUN_B: expected two runs");
  if (mx_train_compare(&step, name, a->compare, a->config, &err)) return cli_fail(&err);
  if (step == UINT64_MAX) {
    puts("Both runs have the same digests, in all steps that both have.");
    return CLI_FINE;
  }
  printf("The runs part at step %" PRIu64 "%s%s.\n", step, *name ? ", at " : "", name);
  if (!*name) puts("Run both with --digests all to learn which tensor parts first.");
  return CLI_DIFFERS;
}

static int print_result(const struct args *a, const mx_train_result *r) {
  out *o = out_new();
  out_text(o, "run", a->out);
  out_u64(o, "steps", r->steps);
  if (r->replaced) out_text(o, "replaced", "the run that was in the folder");
  if (*r->sgemm) out_text(o, a->json ? "fp32_products" : "FP32 products", r->sgemm);
  out_figure(o, "loss", r->loss, "%.6f", a->json);
  if (!isnan(r->val_loss)) {
    out_figure(o, a->json ? "val_loss" : "validation loss", r->val_loss, "%.6f", a->json);
    out_figure(o, a->json ? "val_loss_fp32" : "with an FP32 forward pass", r->val_loss_fp32, "%.6f", a->json);
  }
  if (!isnan(r->val_accuracy)) {
    out_figure(o, a->json ? "val_accuracy" : "accuracy", r->val_accuracy, "%.4f", a->json);
    out_figure(o, a->json ? "val_accuracy_fp32" : "with an FP32 forward pass", r->val_accuracy_fp32, "%.4f", a->json);
  }
  return out_print(o, a->json);
}

static int run(const cli_context *ctx, void *args) {
  const struct args *a = args;
  (void)ctx;
  if (a->list) return list_all(a->json);
  if (a->compare) return compare(a);
  if (!a->config) return cli_error("train: no configuration, expected CONFIG.json");
  if (!a->out) return cli_error("train: no output, expected -o RUN");
  progress_line line = {.terminal = isatty(STDERR_FILENO)};
  const mx_train_options how = {.config = a->config,
                                .dir = a->out,
                                .set = a->set.items,
                                .n_set = a->set.n,
                                .init = a->init,
                                .gradients = a->gradients,
                                .resume = a->resume,
                                .all_digests = a->digests && !strcmp(a->digests, "all"),
                                .n_threads = cli_threads(&a->threads),
                                .stop = &cli_stop,
                                .report = report,
                                .warn = warn,
                                .self = &line};
  cli_stop_on_signals();
  mx_train_result result;
  mx_error err;
  const mx_status status = mx_train_run(&result, &how, &err);
  if (line.terminal && line.any) progress_clear();
  if (status) return cli_fail(&err);
  if (result.end == MX_TRAIN_DIVERGED) {
    cli_error("%s: step %" PRIu64 ": %s", a->out, result.steps, result.why);
    return CLI_DIFFERS;
  }
  if (result.end == MX_TRAIN_INTERRUPTED) {
    cli_error("stopped after step %" PRIu64 ": %s holds a checkpoint, and --resume goes on from it", result.steps, a->out);
    return CLI_STOPPED;
  }
  return print_result(a, &result);
}

const cli_command cmd_train = {
    options, sizeof(struct args), run,
    "Trains llama, gpt2 or byte_mlp on bytes of a text, or a small network on a regression, on digits or as a diffusion model. Without "
    "\"quant\" everything is FP32; with it every linear layer "
    "but the head runs the recipe's six\n"
    "quantisations (mxgold linear). The same configuration gives the same bits of every weight at every step, on "
    "any machine and number of threads:\n"
    "digests.txt has a digest for each step, and --compare finds where two runs differ.\n"
    "SIGTERM, SIGINT and SIGUSR1 end the run after the current step with a checkpoint and exit status 3. A loss or gradient that "
    "is not finite, and a loss that explodes\n"
    "(train.divergence), end it with exit status 1 and the name of the part of the model where that began."};
