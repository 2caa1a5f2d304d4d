/* Stands for OpenMP's header with one thread: fuzz targets are built without OpenMP. */
#ifndef FUZZ_OMP_H
#define FUZZ_OMP_H
static inline int omp_get_max_threads(void) { return 1; }
static inline int omp_get_thread_num(void) { return 0; }
static inline int omp_get_num_threads(void) { return 1; }
static inline int omp_get_num_procs(void) { return 1; }
static inline int omp_get_active_level(void) { return 0; }
static inline int omp_get_max_active_levels(void) { return 1; }
#endif
