/* Compares conversions from binary32 and the approximate reciprocal with mxgold's on every input there is.

   all32 [--only TEXT] [--digests FILE] [--against FILE] [--rcp-delta FILE]
     --digests FILE     write "NAME XXH3-128" of the 2^32 outputs in order of the input's bits
     --against FILE     compare with such a file
     --rcp-delta FILE   write, for the 2^23 inputs of [1, 2), the reciprocal's bits minus those of the correctly rounded one, a signed byte each
   Built with -DHOLD_NO_DEVICE mxgold plays the device. Exit status: 0 all equal, 1 something differs, 2 trouble. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "all32.h"
#include "mxgold/format.h"
#include "mxgold/rcp.h"
#include "mxgold/spec.h"

#ifndef HOLD_NO_DEVICE
#include <cuda_runtime_api.h>
#endif
#include <xxhash.h>

enum { chunk = 1 << 26, step = 1 << 16 };

/* A conversion, or the reciprocal if format is NULL. */
typedef struct conversion {
  const char *name;
  int bytes;
  const char *format;
  int round, saturates;
  uint32_t nan;
} conversion;

static const conversion conversions[] = {
#define SIL_CVT(NAME, BYTES, PTX, FORMAT, ROUND, SATURATES, NAN_CODE) {#NAME, BYTES, FORMAT, MX_ROUND_##ROUND, SATURATES, NAN_CODE},
#include "cvt.def"
    {"rcp_approx_ftz_f32", 4, NULL, 0, 0, 0},
};
enum { conversion_count = sizeof conversions / sizeof *conversions };

static void die(const char *what, const char *why) {
  fprintf(stderr, "all32: %s: %s\n", what, why);
  exit(2);
}

#ifndef HOLD_NO_DEVICE
static void *device_buffer;
static uint32_t get(const void *p, int bytes, size_t i) { return bytes == 2 ? ((const uint16_t *)p)[i] : ((const uint32_t *)p)[i]; }
static void check(int e, const char *what) {
  if (e) die(what, cudaGetErrorString((cudaError_t)e));
}
static void device_fill(sil_all32 *f, const char *name, uint64_t first, int bytes, void *out) {
  check(cudaMemset(device_buffer, 0x5A, (size_t)chunk * (size_t)bytes), "poison");
  check(f(first, chunk, device_buffer), name);
  check(cudaMemcpy(out, device_buffer, (size_t)chunk * (size_t)bytes, cudaMemcpyDeviceToHost), name);
}
#endif

static void *host_buffer(size_t bytes) {
  void *p = NULL;
#ifdef HOLD_NO_DEVICE
  p = malloc(bytes);
  if (!p) die("memory", "none left");
#else
  check(cudaMallocHost(&p, bytes), "pinned memory");
  if (!device_buffer) check(cudaMalloc(&device_buffer, bytes), "device memory");
#endif
  return p;
}

static float value_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

/* Converts one value as the device does by SPEC section 4. */
static uint32_t expect_one(const conversion *c, const mx_format *format, uint32_t bits) {
  const uint32_t magnitude = bits & 0x7FFFFFFFu, sign = bits >> 31;
  const int shift = !strcmp(c->format, "tf32") ? 13 : 0;
  if (magnitude > 0x7F800000u) return c->nan ? c->nan : bits & ~0x1FFFu; /* cvt.rna.tf32: integer arithmetic on the word */
  if (magnitude == 0x7F800000u && !c->saturates) return (uint32_t)(format->inf_code << shift) | sign << (format->bits + shift - 1);
  const mx_encoding how = {.round = c->round, .overflow = c->saturates || c->round == MX_ROUND_RTZ ? MX_OVERFLOW_SATURATE : MX_OVERFLOW_IEEE};
  return (uint32_t)mx_encode(format, value_of(bits), &how, 0) << shift;
}

static uint32_t expect(const conversion *c, const mx_format *format, uint32_t bits) {
  if (!format) return mx_rcp_approx_sm90(bits);
  const uint32_t one = expect_one(c, format, bits);
  return format->bits == 8 ? one << 8 | expect_one(c, format, bits ^ 0x80000000u) : one;
}

static void digest_text(char text[33], XXH3_state_t *h) {
  const XXH128_hash_t x = XXH3_128bits_digest(h);
  snprintf(text, 33, "%016llx%016llx", (unsigned long long)x.high64, (unsigned long long)x.low64);
}

static size_t convert(const conversion *c, void *out, char digest[33], sil_all32 *device) {
  const mx_format *format = c->format ? mx_format_find(c->format) : NULL;
  XXH3_state_t *h = XXH3_createState();
  size_t wrong = 0;
  XXH3_128bits_reset(h);
  (void)device;
  for (uint64_t first = 0; first < (uint64_t)1 << 32; first += chunk) {
#ifdef HOLD_NO_DEVICE
#pragma omp parallel for schedule(dynamic)
    for (size_t block = 0; block < chunk; block += step)
      for (size_t i = block; i < block + step; i++) {
        const uint32_t want = expect(c, format, (uint32_t)(first + i));
        if (c->bytes == 2)
          ((uint16_t *)out)[i] = (uint16_t)want;
        else
          ((uint32_t *)out)[i] = want;
      }
    XXH3_128bits_update(h, out, (size_t)chunk * (size_t)c->bytes);
#else
    device_fill(device, c->name, first, c->bytes, out);
#pragma omp parallel reduction(+ : wrong)
    {
#pragma omp single nowait
      XXH3_128bits_update(h, out, (size_t)chunk * (size_t)c->bytes);
#pragma omp for schedule(dynamic)
      for (size_t block = 0; block < chunk; block += step)
        for (size_t i = block; i < block + step; i++) {
          const uint32_t got = get(out, c->bytes, i), want = expect(c, format, (uint32_t)(first + i));
          if (got == want) continue;
          if (wrong++ < 2) printf("  %s %08x: device %x, mxgold %x\n", c->name, (unsigned)(first + i), got, want);
        }
    }
#endif
  }
  digest_text(digest, h);
  XXH3_freeState(h);
  return wrong;
}

#ifndef HOLD_NO_DEVICE
/* Compares the bits of the reciprocal over [1, 2) with correctly rounded ones. */
static void reciprocal_table(void *out, const char *delta_path) {
  int8_t *delta = malloc((size_t)1 << 23);
  long histogram[256] = {0};
  if (!delta) die("memory", "none left");
  device_fill(sil_rcp, "rcp", 0x3F800000u, 4, out); /* this is more than the interval; the rest is not used */
  for (uint32_t f = 0; f < 1u << 23; f++) {
    const float exact = 1.0f / value_of(0x3F800000u | f);
    const uint32_t got = get(out, 4, f);
    uint32_t bits;
    memcpy(&bits, &exact, 4);
    const int32_t d = (int32_t)(got - bits);
    if (d < -127 || d > 127) printf("  rcp %08x: %08x is far from %08x\n", 0x3F800000u | f, got, bits);
    delta[f] = (int8_t)d;
    histogram[(uint8_t)delta[f]]++;
  }
  printf("  rcp over [1, 2), correctly rounded + n units:");
  for (int d = -128; d < 128; d++)
    if (histogram[(uint8_t)d]) printf("  %+d: %ld", d, histogram[(uint8_t)d]);
  printf("\n");
  if (delta_path) {
    FILE *f = fopen(delta_path, "wb");
    if (!f || fwrite(delta, 1, (size_t)1 << 23, f) != (size_t)1 << 23 || fclose(f)) die(delta_path, "cannot write");
  }
  free(delta);
}
#endif

int main(int argc, char **argv) {
  const char *only = "", *digests = NULL, *against = NULL, *rcp_delta = NULL;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--only"))
      only = argv[i + 1];
    else if (!strcmp(argv[i], "--digests"))
      digests = argv[i + 1];
    else if (!strcmp(argv[i], "--against"))
      against = argv[i + 1];
    else if (!strcmp(argv[i], "--rcp-delta"))
      rcp_delta = argv[i + 1];
    else
      die(argv[i], "unknown option");
  }
  FILE *digest_file = digests ? fopen(digests, "w") : NULL;
  if (digests && !digest_file) die(digests, "cannot write");
  char *known = calloc(1, 1 << 16);
  if (!known) die("memory", "none left");
  if (against) {
    FILE *f = fopen(against, "r");
    if (!f || !fread(known, 1, (1 << 16) - 1, f)) die(against, "cannot read");
    fclose(f);
  }
  void *out = host_buffer((size_t)chunk * 4);
  int bad = 0;
  for (int i = 0; i < conversion_count; i++) {
    const conversion *c = &conversions[i];
    char digest[33], line[128];
    if (!strstr(c->name, only)) continue;
#ifdef HOLD_NO_DEVICE
    (void)rcp_delta;
    const size_t wrong = convert(c, out, digest, NULL);
#else
    if (!c->format) reciprocal_table(out, rcp_delta);
    const size_t wrong = convert(c, out, digest, c->format ? sil_cvt[i] : sil_rcp);
#endif
    snprintf(line, sizeof line, "%s %s\n", c->name, digest);
    const int off = against && !strstr(known, line);
    printf("%-24s 4294967296 inputs, %zu differ from mxgold's, %s%s\n", c->name, wrong, digest, off ? "  NOT THE DIGEST ON FILE" : "");
    fflush(stdout);
    if (digest_file) fputs(line, digest_file), fflush(digest_file);
    bad |= wrong != 0 || off;
  }
  if (digest_file) fclose(digest_file);
  free(known);
  return bad;
}
