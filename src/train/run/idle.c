/* Finds the keys that were given and that a run of this kind does not read. */
#include "train/run/idle.h"

#include <stdio.h>

#include "mxgold/ablate.h"
#include "train/run/data.h"

/* Is anything of the quantised products drawn? */
static int is_random(const mxi_config *c) {
  int any = 0;
  for (int q = 0; q < MX_OPERANDS && c->quantised; q++) {
    const mx_spec *s = &c->recipe.q[q];
    any |= !c->recipe.off[q / 2] && (mx_spec_is_random(s) || (s->had_size && s->had_sign == MX_HAD_SIGN_FRESH));
  }
  return any;
}

size_t mxi_config_idle(char *out, size_t size, const mxi_config *c) {
  const int kind = c->model.kind, optim = c->optim.kind;
  const int gpt2 = kind == MXI_GPT2, gaussian = kind == MXI_GAUSSIAN, digits = kind == MXI_DIGITS, diffusion = kind == MXI_DIFFUSION;
  const int rows = mxi_data_is_table(c), blocks = gpt2 || kind == MXI_LLAMA, made = gaussian || diffusion;
  const int late = c->qaf.when != MXI_QAF_NEVER, decays = c->schedule.kind != MXI_CONSTANT;
  const struct {
    const char *key;
    int works;
  } rules[] = {{"model.width", !gaussian},
               {"model.layers", blocks || digits || diffusion},
               {"model.heads", blocks},
               {"model.ffn", blocks},
               {"model.context", !rows},
               {"model.vocab", !rows},
               {"model.act", gpt2 || diffusion},
               {"model.tied", blocks},
               {"data.text", !rows},
               {"data.tokens", !rows},
               {"data.file", digits},
               {"data.rows", made},
               {"data.features", gaussian},
               {"data.points", diffusion},
               {"data.noise", diffusion},
               {"data.timesteps", diffusion},
               {"data.beta_first", diffusion},
               {"data.beta_last", diffusion},
               {"train.seed_data", made || c->data.order == MXI_RANDOM_ORDER},
               {"train.seed_quant", is_random(c)},
               {"train.eval_every", c->data.split < 1 && mxi_data_validation_count(c) > 0},
               {"train.eval_batches", !c->data.eval_rows},
               {"optimizer.momentum", optim == MXI_SGD},
               {"optimizer.beta1", optim != MXI_SGD},
               {"optimizer.beta2", optim != MXI_SGD},
               {"optimizer.eps", optim != MXI_SGD},
               {"optimizer.theta", optim == MXI_STABLESPAM},
               {"optimizer.gamma1", optim == MXI_STABLESPAM},
               {"optimizer.gamma2", optim == MXI_STABLESPAM},
               {"optimizer.reset", optim == MXI_STABLESPAM},
               {"optimizer.reset_order", optim == MXI_STABLESPAM && c->optim.reset},
               {"schedule.decay_steps", decays},
               {"schedule.min_lr", decays},
               {"metrics.every", c->quantised},
               {"metrics.layers", c->quantised && c->metrics.every},
               {"threshold.every", c->quantised && !c->recipe.off[MX_WGRAD]},
               {"threshold.full", c->quantised && !c->recipe.off[MX_WGRAD] && c->threshold.every},
               {"loss.init", c->loss.dynamic},
               {"loss.growth", c->loss.dynamic},
               {"loss.backoff", c->loss.dynamic},
               {"qaf.step", c->qaf.when == MXI_QAF_STEP && c->qaf.step < c->train.steps},
               {"qaf.patience", c->qaf.when == MXI_QAF_THRESHOLD},
               {"qaf.forward", late},
               {"qaf.dtype", late},
               {"qaf.lr", late},
               {"qaf.warmup", late}};
  size_t n = 0, at = 0;
  *out = 0;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (!rules[i].works && at < size && !mxi_config_is_default(c, rules[i].key))
      at += (size_t)snprintf(out + at, size - at, "%s%s", n++ ? " " : "", rules[i].key);
  return n;
}
