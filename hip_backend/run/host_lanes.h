/** Declares the CPU host runtime for kernels (runtime.h says how to write them). Lanes are fibers; blocks run one after another.
 *
 *  It checks and reports, with kernel, block, lane and place: barriers and wave operations that not every lane reaches, accesses outside an
 *  allocation, reads of bytes that nothing wrote (shared memory included), and shuffles from lanes that do not exist. A kernel goes on after
 *  a report if it can: a bad read gives 0, a bad write is dropped; a divergent block is abandoned. */
#ifndef MXH_HOST_LANES_H
#define MXH_HOST_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>

namespace mxh_host {

enum : unsigned { wave_lanes = 64, max_operand = 512 }; /* bytes that a lane passes to, or gets from, a wave operation */

struct lane_state {
  unsigned thread, block, block_size, grid_size;
};
extern thread_local const lane_state *current_lane;
inline const lane_state *lane() { return current_lane; }

/* Kernels register themselves, so that launch() finds them by name. */
struct kernel_entry {
  const char *name;
  void (*lane)(const void *args);
  size_t args_size;
  unsigned max_block;
  kernel_entry *next;
  kernel_entry(const char *name, void (*lane)(const void *), size_t args_size, unsigned max_block);
};
const kernel_entry *find_kernel(const char *name);
const kernel_entry *first_kernel();

/** Runs a kernel. Returns the number of reports that it made (0: clean), or -1 if there is no such kernel or the launch does not fit it. */
int launch(const char *name, unsigned grid, unsigned block, const void *args, size_t args_size);
/** What was reported since the last call, one line each, or "" if nothing was. At most 20 lines are kept. */
const char *reports();

/* Memory of the "device": allocations with a shadow that says of each byte whether it was written. */
void *alloc(size_t n_bytes);
void release(void *p);
void set_written(void *p, size_t n_bytes);      /* for a copy to the device */
bool check_read(const void *p, size_t n_bytes); /* for a copy from the device: reports bytes that were never written */
const void *access(const void *p, size_t n_bytes, bool is_write, bool is_read); /* p if the access is allowed; otherwise NULL and a report */

int new_shared_slot();
void *shared_memory(int slot, size_t n_bytes, const char *name);

template <class T> struct ref {
  T *p;
  using V = typename std::remove_const<T>::type;
  operator V() const {
    V v;
    if (access(p, sizeof(T), false, true))
      memcpy(static_cast<void *>(&v), p, sizeof v);
    else
      memset(static_cast<void *>(&v), 0, sizeof v);
    return v;
  }
  const ref &operator=(const V &v) const {
    if (access(p, sizeof(T), true, false)) memcpy(static_cast<void *>(p), &v, sizeof v);
    return *this;
  }
  const ref &operator=(const ref &o) const { return *this = V(o); }
  ref(T *q) : p(q) {}
  ref(const ref &) = default;
  const ref &operator+=(const V &v) const { return *this = V(V(*this) + v); }
  const ref &operator|=(const V &v) const { return *this = V(V(*this) | v); }
  const ref &operator^=(const V &v) const { return *this = V(V(*this) ^ v); }
};

/* A pointer whose accesses are checked. It is as large as T *, so that the arguments of a kernel have the same layout everywhere. */
template <class T> struct ptr {
  T *p;
  ptr() = default;
  ptr(T *q) : p(q) {}
  template <class U, class = typename std::enable_if<std::is_convertible<U *, T *>::value>::type> ptr(const ptr<U> &o) : p(o.p) {}
  template <class I> ref<T> operator[](I i) const { return ref<T>(p + i); }
  ref<T> operator*() const { return ref<T>(p); }
  template <class I> ptr operator+(I i) const { return ptr(p + i); }
  explicit operator bool() const { return p != nullptr; }
  bool operator==(std::nullptr_t) const { return p == nullptr; }
  bool operator!=(std::nullptr_t) const { return p != nullptr; }
};

/* A reference to an object, checked once as a whole: readable if const, otherwise writable; later accesses to its fields are not checked. */
template <class T> T &whole(ptr<T> p) {
  static thread_local typename std::remove_const<T>::type nowhere;
  return access(p.p, sizeof(T), !std::is_const<T>::value, std::is_const<T>::value) ? *p.p : nowhere;
}

template <class T> ptr<T> shared(int slot, size_t n, const char *name) {
  return ptr<T>(static_cast<T *>(shared_memory(slot, n * sizeof(T), name)));
}

/* ---- Where lanes meet ---- */

void barrier(const char *file, int line);
/** Passes `in`, waits for the wave and gets `out`. combine is called once, with the operands of lanes 0..63 at the stated strides; the bits
 *  in `present` of lanes that the block does not have are zero. */
typedef void combine_fn(const void *fn, const void *in, void *out, uint64_t present);
void meet(const char *op, const char *file, int line, const void *in, size_t n_in, void *out, size_t n_out, combine_fn *combine,
          const void *fn);

template <class In, class Out> Out wave_op(const In &in, void (*fn)(const In *, Out *), const char *op, const char *file, int line) {
  static_assert(sizeof(In) <= max_operand && sizeof(Out) <= max_operand, "operand of a wave operation");
  Out out;
  struct call {
    static void combine(const void *f, const void *all_in, void *all_out, uint64_t) {
      (*static_cast<void (*const *)(const In *, Out *)>(f))(static_cast<const In *>(all_in), static_cast<Out *>(all_out));
    }
  };
  meet(op, file, line, &in, sizeof in, &out, sizeof out, call::combine, &fn);
  return out;
}

uint32_t shuffle(uint32_t v, unsigned from, const char *file, int line);
uint64_t ballot(bool v, const char *file, int line);

template <class T> T atomic_max(ptr<T> p, T v) {
  if (!access(p.p, sizeof(T), true, true)) return 0;
  T old = __atomic_load_n(p.p, __ATOMIC_RELAXED);
  while (old < v && !__atomic_compare_exchange_n(p.p, &old, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
template <class T> T atomic_or(ptr<T> p, T v) { return access(p.p, sizeof(T), true, true) ? __atomic_fetch_or(p.p, v, __ATOMIC_RELAXED) : 0; }
template <class T> T atomic_add(ptr<T> p, T v) { return access(p.p, sizeof(T), true, true) ? __atomic_fetch_add(p.p, v, __ATOMIC_RELAXED) : 0; }

} /* namespace mxh_host */
#endif
