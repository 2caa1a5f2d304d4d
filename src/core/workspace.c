/* Keeps memory between calls in slots, which threads take and give back by one atomic exchange. A piece of memory stays with the thread that
 * took it first: if any thread could reuse it, the number of pieces would depend on which thread happens to give back before another one
 * takes. */
#include <omp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/room.h"

enum { SLOTS = 256, LINE = 64 };
enum { EMPTY, TAKEN, READY }; /* READY: it has memory, which nobody uses */

typedef struct slot {
  atomic_int state, owner; /* owner: the number of the thread within its team */
  _Atomic(void *) at;
  atomic_size_t size;
} slot;

struct mx_workspace {
  slot slots[SLOTS];
  _Atomic(struct mx_workspace *) next; /* more slots, for when these are full */
};

mx_workspace *mx_workspace_new(void) {
  mx_workspace *w = malloc(sizeof *w);
  if (!w) return NULL;
  for (size_t i = 0; i < SLOTS; i++) {
    atomic_init(&w->slots[i].state, EMPTY);
    atomic_init(&w->slots[i].owner, 0);
    atomic_init(&w->slots[i].at, NULL);
    atomic_init(&w->slots[i].size, 0);
  }
  atomic_init(&w->next, NULL);
  return w;
}

void mx_workspace_free(mx_workspace *w) {
  for (mx_workspace *next; w; w = next) {
    for (size_t i = 0; i < SLOTS; i++) free(atomic_load(&w->slots[i].at));
    next = atomic_load(&w->next);
    free(w);
  }
}

size_t mx_workspace_bytes(const mx_workspace *workspace) {
  size_t bytes = 0;
  for (mx_workspace *w = (mx_workspace *)(uintptr_t)workspace; w; w = atomic_load(&w->next))
    for (size_t i = 0; i < SLOTS; i++) bytes += atomic_load(&w->slots[i].size);
  return bytes;
}

/* The next group of slots, made by the first thread that needs it; NULL if there is no memory. */
static mx_workspace *after(mx_workspace *w) {
  mx_workspace *next = atomic_load(&w->next);
  if (next) return next;
  mx_workspace *made = mx_workspace_new();
  if (made && atomic_compare_exchange_strong(&w->next, &next, made)) return made;
  mx_workspace_free(made);
  return next;
}

/* Sizes are powers of two and three quarters of them, so that calls of almost the same size can share pieces. */
static size_t step_of(size_t n) {
  size_t size = LINE;
  while (size < n) size *= 2;
  return size >= 4 * LINE && size / 4 * 3 >= n ? size / 4 * 3 : size;
}

static void *from_heap(size_t n) { return aligned_alloc(LINE, n); }

static int claim(slot *s, int from) { return atomic_compare_exchange_strong(&s->state, &from, TAKEN); }

void *mxi_room_take(mx_workspace *w, size_t n) {
  if (n > SIZE_MAX / 4) return NULL;
  if (!w) return from_heap((n + LINE) / LINE * LINE);
  const size_t size = step_of(n);
  const int owner = omp_get_thread_num();
  for (; w; w = after(w))
    for (size_t i = 0; i < SLOTS; i++) {
      slot *s = &w->slots[i];
      const int state = atomic_load(&s->state);
      if (state == EMPTY && claim(s, EMPTY)) { /* slots fill from the first on, so no slot after an empty one is ready */
        void *p = from_heap(size);
        atomic_store(&s->at, p);
        atomic_store(&s->size, p ? size : 0);
        atomic_store(&s->owner, owner);
        if (!p) atomic_store(&s->state, EMPTY);
        return p;
      }
      if (state == READY && atomic_load(&s->size) == size && atomic_load(&s->owner) == owner && claim(s, READY)) return atomic_load(&s->at);
    }
  return from_heap(size); /* no slot holds it, so giving it back frees it */
}

void mxi_room_give(mx_workspace *w, void *p) {
  for (; w && p; w = atomic_load(&w->next))
    for (size_t i = 0; i < SLOTS; i++)
      if (atomic_load(&w->slots[i].at) == p) {
        atomic_store(&w->slots[i].state, READY);
        return;
      }
  free(p);
}
