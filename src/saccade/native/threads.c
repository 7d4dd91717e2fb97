/* The inner loops of running a Transformer: matrix products, attention over cached keys, top-k. The files of this folder
   are one program, in the order that saccade/native/__init__.py gives; this one is the first.

   Weights are rounded once to integers with one scale per output, activations at every use with one scale
   per row: a row's result never depends on its neighbours. Sixteen-bit multiply-add (vpmaddwd, or vpdpwssd
   where there is one) does twice the work of a float one per instruction, and eight-bit multiply-add (vpdpbusd)
   four times; integers are summed exactly, and turned into floats before they could overflow. */

#include <immintrin.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* ---- threads: PyTorch's own, for a second pool beside it would fight it for the cores ---- */

int most_threads(void) { return omp_get_max_threads(); }

/* Weak, for OpenMP libraries from before version 5.0 do not have it. */
extern int omp_pause_resource_all(omp_pause_resource_t kind) __attribute__((weak));

/* Ends this thread's pool before a fork: the child would wait for threads that it does not have. The next call makes a
   new pool. Whether that could be done. */
int end_threads(void) { return omp_pause_resource_all && !omp_pause_resource_all(omp_pause_hard); }

/* Small work is done by one thread: calling the others costs some microseconds, and more on a busy machine. */
static int enough(int threads, double operations) {
    int useful = 1 + (int)fmin(operations / 5e5, 1024);
    return threads < useful ? threads : useful;
}

/* OpenMP's own barrier spins for milliseconds when another process has taken a core; this one gives way. */
typedef struct { atomic_int arrived, round; } Meeting;

static void meet(Meeting *meeting, int threads) {
    if (threads == 1) return;
    int round = atomic_load(&meeting->round);
    if (atomic_fetch_add(&meeting->arrived, 1) == threads - 1) {
        atomic_store(&meeting->arrived, 0);
        atomic_store(&meeting->round, round + 1);
        return;
    }
    for (int spins = 0; atomic_load(&meeting->round) == round; spins++)
        if (spins < 1000) _mm_pause(); else sched_yield();
}

INLINE void share(int count, int thread, int threads, int *from, int *to) {
    *from = (int)((int64_t)count * thread / threads);
    *to = (int)((int64_t)count * (thread + 1) / threads);
}

typedef struct { void *memory; int64_t bytes; } Kept;

static pthread_key_t kept_here;
static pthread_once_t kept_once = PTHREAD_ONCE_INIT;

static void forget(void *kept) { free(((Kept *)kept)->memory), free(kept); }
static void prepare_to_keep(void) { pthread_key_create(&kept_here, forget); }

/* Room for one call's intermediate values, kept for the thread's next call, for fresh memory would be cleared page
   by page, and given back when the thread ends: every file's batches have threads of their own. */
static void *scratch(int64_t bytes) {
    pthread_once(&kept_once, prepare_to_keep);
    Kept *kept = pthread_getspecific(kept_here);
    if (!kept) {
        if (!(kept = calloc(1, sizeof *kept))) return NULL;
        pthread_setspecific(kept_here, kept);
    }
    if (bytes > kept->bytes) {
        free(kept->memory);
        kept->memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
        kept->bytes = kept->memory ? bytes : 0;
    }
    return kept->memory;
}

static void *part(char **next, int64_t bytes) {
    void *here = *next;
    *next += (bytes + 63) / 64 * 64;
    return here;
}

static int larger(int a, int b) { return a > b ? a : b; }
