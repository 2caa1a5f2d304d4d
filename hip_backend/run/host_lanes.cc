/* Implements the CPU host runtime: fibers, the points where they meet, and checked memory. */
#include "host_lanes.h"

#include <map>
#include <mutex>
#include <stdio.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string>
#include <sys/mman.h>
#include <vector>
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace mxh_host {

thread_local const lane_state *current_lane;

/* ---- Kernels ---- */

static kernel_entry *kernels;
kernel_entry::kernel_entry(const char *n, void (*l)(const void *), size_t s, unsigned m)
    : name(n), lane(l), args_size(s), max_block(m), next(kernels) {
  kernels = this;
}
const kernel_entry *first_kernel() { return kernels; }
const kernel_entry *find_kernel(const char *name) {
  for (const kernel_entry *k = kernels; k; k = k->next)
    if (!strcmp(k->name, name)) return k;
  return nullptr;
}

/* ---- Reports ---- */

static std::string report_text, report_given;
static int report_count;
static const char *running = "";

__attribute__((format(printf, 1, 2))) static void report(const char *format, ...) {
  if (report_count++ >= 20) return;
  char line[400];
  int n = snprintf(line, sizeof line, "%s", running);
  if (current_lane) n += snprintf(line + n, sizeof line - (size_t)n, ": block %u lane %u", current_lane->block, current_lane->thread);
  n += snprintf(line + n, sizeof line - (size_t)n, ": ");
  va_list list;
  va_start(list, format);
  vsnprintf(line + n, sizeof line - (size_t)n, format, list);
  va_end(list);
  report_text += line;
  report_text += '\n';
}
const char *reports() {
  report_given.swap(report_text);
  report_text.clear();
  report_count = 0;
  return report_given.c_str();
}

/* ---- Memory: each allocation has a shadow with one byte for each of its bytes, 1 if that was written ---- */

struct area {
  size_t size;
  std::vector<uint8_t> written;
  std::string name;
};
static std::map<uintptr_t, area> areas; /* by address of the first byte */
static std::pair<const uintptr_t, area> *last_area;

static std::pair<const uintptr_t, area> *find_area(uintptr_t at) {
  if (last_area && at >= last_area->first && at < last_area->first + last_area->second.size) return last_area;
  auto i = areas.upper_bound(at);
  if (i == areas.begin()) return nullptr;
  --i;
  if (at >= i->first + i->second.size) return nullptr;
  return last_area = &*i;
}
/* A page before and a MiB after each area are left unmapped, so that an access that escapes the checks faults, and an index that is too
 * large by less than that does not reach another area. */
enum { page = 4096, gap = 1 << 20 };
static size_t mapped(size_t n_bytes) { return (n_bytes + page - 1) / page * page + page + gap; }
static void *area_new(size_t n_bytes, const char *name) {
  const size_t n = mapped(n_bytes);
  uint8_t *p = (uint8_t *)mmap(nullptr, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  if (n > page + gap && mprotect(p + page, n - page - gap, PROT_READ | PROT_WRITE)) return nullptr;
  area a;
  a.size = n_bytes;
  a.written.assign(n_bytes, 0);
  a.name = name;
  areas[(uintptr_t)(p + page)] = a;
  return p + page;
}
void *alloc(size_t n_bytes) { return area_new(n_bytes ? n_bytes : 1, "memory"); }
void release(void *p) {
  auto i = areas.find((uintptr_t)p);
  if (i == areas.end()) return;
  const size_t n = mapped(i->second.size);
  last_area = nullptr;
  areas.erase(i);
  munmap((uint8_t *)p - page, n);
}
const void *access(const void *p, size_t n_bytes, bool is_write, bool is_read) {
  uintptr_t at = (uintptr_t)p;
  auto *a = find_area(at);
  if (!a) { /* it may be just behind one */
    auto i = areas.upper_bound(at);
    if (i != areas.begin() && at - (--i)->first < i->second.size + gap) a = &*i;
  }
  if (!a || at + n_bytes > a->first + a->second.size) {
    if (!a)
      report("%s at %p is in no allocation", is_write ? "write" : "read", p);
    else
      report("%s of %zu bytes at offset %zu goes beyond %s of %zu bytes", is_write ? "write" : "read", n_bytes, (size_t)(at - a->first),
             a->second.name.c_str(), a->second.size);
    return nullptr;
  }
  uint8_t *shadow = a->second.written.data() + (at - a->first);
  if (is_read)
    for (size_t i = 0; i < n_bytes; i++)
      if (!shadow[i]) {
        report("read of uninitialised %s at offset %zu", a->second.name.c_str(), (size_t)(at - a->first) + i);
        memset(shadow, 1, n_bytes); /* report it only once */
        break;
      }
  if (is_write) memset(shadow, 1, n_bytes);
  return p;
}
void set_written(void *p, size_t n_bytes) {
  if (n_bytes) access(p, n_bytes, true, false);
}
bool check_read(const void *p, size_t n_bytes) { return !n_bytes || access(p, n_bytes, false, true) != nullptr; }

static int n_shared_slots;
int new_shared_slot() { return n_shared_slots++; }

/* ---- Fibers ---- */

struct place {
  const char *op, *file;
  int line;
};
enum state { IDLE, READY, AT_WAVE, AT_BLOCK, DONE };

struct fiber {
  void *stack;
#ifdef __x86_64__
  void *sp;
#else
  ucontext_t context;
#endif
};
enum { stack_size = 256 << 10 };

static void free_fiber(fiber *f) {
  munmap(f->stack, stack_size);
  delete f;
}

struct lane_run {
  lane_state at;
  state st;
  fiber *on;
  place where;
  combine_fn *combine;
  const void *fn;
  size_t n_in, n_out;
  uint8_t in[max_operand], out[max_operand];
};
struct block_run {
  const kernel_entry *kernel;
  const void *args;
  std::vector<lane_run> lanes;
  std::vector<fiber *> spare;
  std::vector<void *> shared; /* by slot */
  lane_run *now;
#ifdef __x86_64__
  void *scheduler_sp;
#else
  ucontext_t scheduler;
#endif
  ~block_run() {
    for (fiber *f : spare) free_fiber(f);
  }
};
static block_run run;

#ifdef __x86_64__
/* Saves the callee-saved registers on this stack, and continues on the other one. */
extern "C" void mxh_switch(void **save_sp, void *to_sp);
__asm__(".text\n.globl mxh_switch\n.hidden mxh_switch\n.type mxh_switch,@function\nmxh_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp,(%rdi)\n  movq %rsi,%rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n.size mxh_switch,.-mxh_switch\n");
static void to_scheduler(fiber *f) { mxh_switch(&f->sp, run.scheduler_sp); }
static void to_fiber(fiber *f) { mxh_switch(&run.scheduler_sp, f->sp); }
#else
static void to_scheduler(fiber *f) { swapcontext(&f->context, &run.scheduler); }
static void to_fiber(fiber *f) { swapcontext(&run.scheduler, &f->context); }
#endif

/* A fiber runs one lane after another until one of them has to wait. */
static void fiber_main() {
  for (;;) {
    lane_run *l = run.now;
    run.kernel->lane(run.args);
    l->st = DONE;
    to_scheduler(l->on);
  }
}
static fiber *new_fiber() {
  if (!run.spare.empty()) {
    fiber *f = run.spare.back();
    run.spare.pop_back();
    return f;
  }
  fiber *f = new fiber;
  f->stack = mmap(nullptr, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (f->stack == MAP_FAILED) abort();
  mprotect(f->stack, 4096, PROT_NONE);
#ifdef __x86_64__
  void **sp = (void **)((uint8_t *)f->stack + stack_size);
  *--sp = nullptr; /* a return address that is never used, so that the stack is aligned as after a call */
  *--sp = (void *)fiber_main;
  for (int i = 0; i < 6; i++) *--sp = nullptr;
  f->sp = sp;
#else
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = f->stack;
  f->context.uc_stack.ss_size = stack_size;
  makecontext(&f->context, fiber_main, 0);
#endif
  return f;
}

static void resume(lane_run *l) {
  if (!l->on) l->on = new_fiber();
  run.now = l;
  current_lane = &l->at;
  to_fiber(l->on);
  current_lane = nullptr;
  if (l->st == DONE) {
    run.spare.push_back(l->on);
    l->on = nullptr;
  }
}
static void wait(state st, const place &where) {
  lane_run *l = run.now;
  l->st = st;
  l->where = where;
  to_scheduler(l->on);
}

void *shared_memory(int slot, size_t n_bytes, const char *name) {
  if (run.shared.size() <= (size_t)slot) run.shared.resize((size_t)slot + 1);
  void *&p = run.shared[(size_t)slot];
  if (!p) p = area_new(n_bytes, name);
  return p;
}

void barrier(const char *file, int line) { wait(AT_BLOCK, {"barrier", file, line}); }
void meet(const char *op, const char *file, int line, const void *in, size_t n_in, void *out, size_t n_out, combine_fn *combine,
          const void *fn) {
  lane_run *l = run.now;
  memcpy(l->in, in, n_in);
  l->n_in = n_in;
  l->n_out = n_out;
  l->combine = combine;
  l->fn = fn;
  wait(AT_WAVE, {op, file, line});
  memcpy(out, l->out, n_out);
}

/* Shuffle and ballot, as wave operations that check which lanes are present. */
struct shuffle_in {
  uint32_t v, from;
};
static void shuffle_all(const void *, const void *in, void *out, uint64_t present) {
  const shuffle_in *s = (const shuffle_in *)in;
  uint32_t *o = (uint32_t *)out;
  for (unsigned l = 0; l < wave_lanes; l++) {
    o[l] = 0;
    if (!(present >> l & 1)) continue;
    if (s[l].from >= wave_lanes || !(present >> s[l].from & 1))
      report("shuffle by lane %u of the wave from lane %u, which is not there", l, s[l].from);
    else
      o[l] = s[s[l].from].v;
  }
}
uint32_t shuffle(uint32_t v, unsigned from, const char *file, int line) {
  shuffle_in in = {v, from};
  uint32_t out;
  meet("shuffle", file, line, &in, sizeof in, &out, sizeof out, shuffle_all, nullptr);
  return out;
}
static void ballot_all(const void *, const void *in, void *out, uint64_t present) {
  const uint8_t *v = (const uint8_t *)in;
  uint64_t bits = 0;
  for (unsigned l = 0; l < wave_lanes; l++)
    if (present >> l & 1 && v[l]) bits |= 1ull << l;
  for (unsigned l = 0; l < wave_lanes; l++) ((uint64_t *)out)[l] = bits;
}
uint64_t ballot(bool v, const char *file, int line) {
  uint8_t in = v;
  uint64_t out;
  meet("ballot", file, line, &in, sizeof in, &out, sizeof out, ballot_all, nullptr);
  return out;
}

/* ---- A block ---- */

static bool same_place(const place &a, const place &b) { return a.line == b.line && !strcmp(a.op, b.op) && !strcmp(a.file, b.file); }

/* Whether lanes [first, last), which all wait or are done, are at the same place. Reports the first that is not. */
static bool together(size_t first, size_t last, state st) {
  const lane_run *a = nullptr;
  for (size_t i = first; i < last; i++)
    if (run.lanes[i].st == st) {
      a = &run.lanes[i];
      break;
    }
  for (size_t i = first; i < last; i++) {
    const lane_run &l = run.lanes[i];
    if (l.st == st && same_place(l.where, a->where)) continue;
    current_lane = &l.at;
    if (l.st == DONE)
      report("divergent %s at %s:%d: this lane has returned", a->where.op, a->where.file, a->where.line);
    else
      report("divergent %s at %s:%d: this lane is at %s, %s:%d", a->where.op, a->where.file, a->where.line, l.where.op, l.where.file,
             l.where.line);
    current_lane = nullptr;
    return false;
  }
  return true;
}
static void wave_combine(size_t first, size_t last) {
  static uint8_t in[wave_lanes * max_operand], out[wave_lanes * max_operand];
  size_t n_in = run.lanes[first].n_in, n_out = run.lanes[first].n_out;
  uint64_t present = 0;
  memset(in, 0, wave_lanes * n_in);
  for (size_t i = first; i < last; i++) {
    present |= 1ull << (i - first);
    memcpy(in + (i - first) * n_in, run.lanes[i].in, n_in);
  }
  current_lane = &run.lanes[first].at;
  run.lanes[first].combine(run.lanes[first].fn, in, out, present);
  current_lane = nullptr;
  for (size_t i = first; i < last; i++) {
    memcpy(run.lanes[i].out, out + (i - first) * n_out, n_out);
    run.lanes[i].st = READY;
  }
}
/* Runs one block. False: it was abandoned because it diverged. */
static bool run_block() {
  size_t n = run.lanes.size();
  for (;;) {
    for (size_t first = 0; first < n; first += wave_lanes) {
      size_t last = first + wave_lanes < n ? first + wave_lanes : n;
      for (;;) {
        for (size_t i = first; i < last; i++)
          if (run.lanes[i].st == READY) resume(&run.lanes[i]);
        bool at_wave = false;
        for (size_t i = first; i < last; i++) at_wave |= run.lanes[i].st == AT_WAVE;
        if (!at_wave) break;
        if (!together(first, last, AT_WAVE)) return false;
        wave_combine(first, last);
      }
    }
    bool at_block = false;
    for (auto &l : run.lanes) at_block |= l.st == AT_BLOCK;
    if (!at_block) return true;
    if (!together(0, n, AT_BLOCK)) return false;
    for (auto &l : run.lanes) l.st = READY;
  }
}
/* Marks shared memory as unwritten for the next block. */
static void clear_shared() {
  for (void *p : run.shared)
    if (p) {
      auto &written = areas[(uintptr_t)p].written;
      memset(written.data(), 0, written.size());
    }
}
static void free_shared() {
  for (void *&p : run.shared) {
    if (p) release(p);
    p = nullptr;
  }
}

int launch(const char *name, unsigned grid, unsigned block, const void *args, size_t args_size) {
  static std::mutex one;
  std::lock_guard<std::mutex> guard(one);
  int before = report_count;
  running = name;
  const kernel_entry *k = find_kernel(name);
  if (!k || k->args_size != args_size || !block || block > k->max_block) {
    report(!k ? "no such kernel" : k->args_size != args_size ? "arguments of another size" : "block does not fit the kernel");
    return -1;
  }
  run.kernel = k;
  run.args = args;
  run.lanes.resize(block);
  for (unsigned b = 0; b < grid; b++) {
    for (unsigned t = 0; t < block; t++) {
      lane_run &l = run.lanes[t];
      l.at = {t, b, block, grid};
      l.st = READY;
      l.on = nullptr;
    }
    if (!run_block()) /* abandoned: its fibers are dropped where they are */
      for (auto &l : run.lanes)
        if (l.on) {
          free_fiber(l.on);
          l.on = nullptr;
        }
    clear_shared();
  }
  free_shared();
  running = "";
  return report_count - before;
}

} /* namespace mxh_host */
