/* The inner loops of running a Transformer: narrow matrix products, attention over cached keys, top-k.

   Weights are rounded once to integers with one scale per output, activations at every use with one scale
   per row: a row's result never depends on its neighbours. Sixteen-bit multiply-add (vpmaddwd, or vpdpwssd
   where there is one) does twice the work of a float one per instruction, and eight-bit multiply-add (vpdpbusd)
   four times; integers are summed exactly, and turned into floats before they could overflow. Compiled on the
   machine it runs on, by saccade/native/__init__.py. */

#include <immintrin.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES 16        /* outputs of a panel: two vectors of eight sums, or one of sixteen */
#ifdef __AVX512VNNI__
#define TILE 12         /* rows that share one pass over a panel: as many as the registers hold */
#define CHAINS(rows) ((rows) < 4 ? 4 : 1) /* sums side by side for each row: one alone waits four cycles for itself */
#else
#define TILE 6
#define CHAINS(rows) 1
#endif
#define SHARP 16        /* the likeliest logits of a row, which have all bits where the others are rough */
#define FLUSH 128       /* pairs of 16-bit inputs summed as integers: 2 * 128 * 2032 * 4095 < 2^31 */
#define INLINE static inline __attribute__((always_inline))

enum { RELU = 1, GELU = 2, ADD = 4 };

/* ---- threads: PyTorch's own, for a second pool beside it would fight it for the cores ---- */

int most_threads(void) { return omp_get_max_threads(); }

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

/* ---- linear layers on integers ---- */

typedef struct {
    int outputs, inputs, bits;
    const void *weights; /* panels of 16 outputs; in each, the weights of a step's inputs for every output */
    const float *scales, *bias;
} Linear;

/* Rows of inputs as integers: of 13 bits each in 16, or, where bytes are multiplied, of 8 bits. */
typedef struct {
    char *values;
    int64_t stride;   /* bytes from one row to the next */
    float *scales;
    int32_t *excess;  /* 128 times a row's sum: what weights that are stored as w + 128 add to each output */
    int bits;
} Rounded;

/* Whether 8-bit weights meet 8-bit inputs; elsewhere they are widened and meet 13-bit ones. */
static int in_bytes(int bits) {
#ifdef __AVX512VNNI__
    return bits == 8;
#else
    return (void)bits, 0;
#endif
}

/* Inputs that one instruction takes for each output: what fits into four bytes. */
static int per_step(int bits) { return in_bytes(bits) ? 4 : 2; }

static int padded(int inputs) { return (inputs + 31) / 32 * 32; }

/* From one row of rounded inputs to the next: an odd number of cache lines, for rows 4096 bytes apart would all want the
   same few places of the first cache, which holds no more than eight of the twelve that a tile reads side by side. */
static int64_t stride_of(int inputs) { return ((int64_t)inputs * sizeof(int16_t) + 127) / 128 * 128 + 64; }

int multiplies_bytes(void) { return in_bytes(8); }

int64_t packed_bytes(int outputs, int inputs, int bits) {
    return (int64_t)(outputs + LANES - 1) / LANES * LANES * padded(inputs) * (bits / 8);
}

/* int8 weights use 127 steps; int16 ones 127 * 16, so that weights stored as int8 are kept exactly. */
void pack_weights(const float *weights, int outputs, int inputs, int bits, void *packed, float *scales) {
    int per = per_step(bits), largest = bits == 8 ? 127 : 2032, shift = in_bytes(bits) ? 128 : 0;
    memset(packed, 0, packed_bytes(outputs, inputs, bits));
    for (int o = 0; o < outputs; o++) {
        const float *row = weights + (int64_t)o * inputs;
        float most = 0;
        for (int i = 0; i < inputs; i++) most = fmaxf(most, fabsf(row[i]));
        scales[o] = most > 0 ? most / largest : 1;
        int64_t at = (int64_t)(o / LANES) * padded(inputs) * LANES + o % LANES * per;
        for (int i = 0; i < inputs; i++) {
            int64_t place = at + (int64_t)(i / per) * LANES * per + i % per;
            long value = lrintf(row[i] / scales[o]) + shift;
            if (bits == 8) ((int8_t *)packed)[place] = (int8_t)value;
            else ((int16_t *)packed)[place] = (int16_t)value;
        }
    }
}

/* Written as vectors, because the compiler, which must mind NaN, takes such a loop one number at a time. */
static float largest_size(const float *x, int count) {
    __m256 sign = _mm256_set1_ps(-0.0f), most = _mm256_setzero_ps(), other = most;
    int i = 0;
    for (; i + 16 <= count; i += 16) {
        most = _mm256_max_ps(most, _mm256_andnot_ps(sign, _mm256_loadu_ps(x + i)));
        other = _mm256_max_ps(other, _mm256_andnot_ps(sign, _mm256_loadu_ps(x + i + 8)));
    }
    float lanes[8], result = 0;
    _mm256_storeu_ps(lanes, _mm256_max_ps(most, other));
    for (int l = 0; l < 8; l++) result = lanes[l] > result ? lanes[l] : result;
    for (; i < count; i++) result = fabsf(x[i]) > result ? fabsf(x[i]) : result;
    return result;
}

INLINE __m256i sixteen_rounded(const float *x, __m256 factor) {
    __m256i low = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), factor));
    __m256i high = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), factor));
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8);
}

static void round_row(const float *x, int count, const Rounded *rounded, int row) {
    int bytes = in_bytes(rounded->bits), largest = bytes ? 127 : 4095, sum = 0;
    char *values = rounded->values + row * rounded->stride;
    float most = largest_size(x, count);
    rounded->scales[row] = most / largest;
    float inverse = most > 0 ? largest / most : 0;
    __m256 factor = _mm256_set1_ps(inverse);
    int i = 0;
    if (bytes) {
        int8_t *y = (int8_t *)values;
        for (; i + 16 <= count; i += 16) {
            __m256i sixteen = sixteen_rounded(x + i, factor);
            _mm_storeu_si128((__m128i *)(y + i),
                             _mm_packs_epi16(_mm256_castsi256_si128(sixteen), _mm256_extracti128_si256(sixteen, 1)));
        }
        for (; i < count; i++) y[i] = (int8_t)lrintf(x[i] * inverse);
        for (; i < padded(count); i++) y[i] = 0;
        for (int k = 0; k < count; k++) sum += y[k];
    } else {
        int16_t *y = (int16_t *)values;
        for (; i + 16 <= count; i += 16) _mm256_storeu_si256((__m256i *)(y + i), sixteen_rounded(x + i, factor));
        for (; i < count; i++) y[i] = (int16_t)lrintf(x[i] * inverse);
        for (; i < padded(count); i++) y[i] = 0;
    }
    rounded->excess[row] = 128 * sum;
}

/* This thread's share of the rows. */
static void round_rows(Rounded rounded, const float *x, int rows, int width, int thread, int threads) {
    int from, to;
    share(rows, thread, threads, &from, &to);
    for (int r = from; r < to; r++)
        round_row(x + (int64_t)r * width, width, &rounded, r);
}

/* The sums of a row for all outputs of a panel, and what a step adds to them: the products of the inputs that stand in
   four bytes at `x` with as many weights of every output. */
#ifdef __AVX512VNNI__

typedef __m512i Sums, Weights;

INLINE Sums sums_from(int32_t start) { return _mm512_set1_epi32(start); }

INLINE Weights weights_of(const void *panel, int bits, int64_t step) {
    return (void)bits, _mm512_loadu_si512((const __m512i *)panel + step);
}

/* As the instructions themselves, which repeat the inputs as they read them: left to itself, the compiler copies every
   sum once more at each step. */
INLINE void multiply_add(Sums *sums, const char *x, Weights weights, int bits) {
    const int32_t *four = (const int32_t *)x;
    if (bits == 8) __asm__("vpdpbusd %1%{1to16%}, %2, %0" : "+v"(*sums) : "m"(*four), "v"(weights));
    else __asm__("vpdpwssd %1%{1to16%}, %2, %0" : "+v"(*sums) : "m"(*four), "v"(weights));
}

INLINE Sums both(Sums one, Sums other) { return _mm512_add_epi32(one, other); }

INLINE __m256 half_of(Sums sums, int half) {
    return _mm256_cvtepi32_ps(half ? _mm512_extracti64x4_epi64(sums, 1) : _mm512_castsi512_si256(sums));
}

#else

typedef struct { __m256i half[2]; } Sums, Weights;

INLINE Sums sums_from(int32_t start) { return (Sums){{_mm256_set1_epi32(start), _mm256_set1_epi32(start)}}; }

INLINE __m256i eight_pairs(const void *panel, int bits, int64_t at) {
    if (bits == 16) return _mm256_loadu_si256((const __m256i *)panel + at);
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)panel + at));
}

INLINE Weights weights_of(const void *panel, int bits, int64_t step) {
    return (Weights){{eight_pairs(panel, bits, 2 * step), eight_pairs(panel, bits, 2 * step + 1)}};
}

/* As the instructions themselves: left to itself, the compiler loads all rows' inputs first, which pushes the sums
   out of the registers. */
INLINE void multiply_add(Sums *sums, const char *x, Weights weights, int bits) {
    (void)bits;
    __m256i input = _mm256_castps_si256(_mm256_broadcast_ss((const float *)x));
    for (int half = 0; half < 2; half++) {
        __m256i product;
        __asm__ volatile("vpmaddwd %2, %3, %1\n\tvpaddd %1, %0, %0"
                         : "+x"(sums->half[half]), "=&x"(product) : "x"(input), "x"(weights.half[half]));
    }
}

INLINE Sums both(Sums one, Sums other) {
    for (int half = 0; half < 2; half++) one.half[half] = _mm256_add_epi32(one.half[half], other.half[half]);
    return one;
}

INLINE __m256 half_of(Sums sums, int half) { return _mm256_cvtepi32_ps(sums.half[half]); }

#endif

static float gelu(float x) { return 0.5f * x * (1 + erff(x * 0.70710678f)); }

/* Some rows of one panel of a layer. */
typedef struct {
    const Linear *layer;
    const void *panel;
    int at, steps, how;
    const char *x;
    int64_t stride;
    const float *scales;   /* of the rows */
    const int32_t *excess;
    float *y;              /* the first row's outputs */
} Tile;

/* Integer sums of a row to outputs; the layer's scales and bias are padded to whole panels. */
INLINE void finish(const Tile *tile, int row, __m256 first, __m256 second) {
    const float *scales = tile->layer->scales + tile->at, *bias = tile->layer->bias + tile->at;
    __m256 scale = _mm256_set1_ps(tile->scales[row]);
    first = _mm256_fmadd_ps(_mm256_mul_ps(first, scale), _mm256_loadu_ps(scales), _mm256_loadu_ps(bias));
    second = _mm256_fmadd_ps(_mm256_mul_ps(second, scale), _mm256_loadu_ps(scales + 8), _mm256_loadu_ps(bias + 8));
    if (tile->how & RELU) {
        first = _mm256_max_ps(first, _mm256_setzero_ps());
        second = _mm256_max_ps(second, _mm256_setzero_ps());
    }
    int lanes = tile->layer->outputs - tile->at;
    float *y = tile->y + (int64_t)row * tile->layer->outputs;
    if (lanes >= LANES && !(tile->how & GELU)) {
        if (tile->how & ADD) {
            first = _mm256_add_ps(first, _mm256_loadu_ps(y));
            second = _mm256_add_ps(second, _mm256_loadu_ps(y + 8));
        }
        _mm256_storeu_ps(y, first);
        _mm256_storeu_ps(y + 8, second);
        return;
    }
    float values[LANES];
    _mm256_storeu_ps(values, first);
    _mm256_storeu_ps(values + 8, second);
    for (int l = 0; l < (lanes < LANES ? lanes : LANES); l++) {
        float value = tile->how & GELU ? gelu(values[l]) : values[l];
        y[l] = tile->how & ADD ? y[l] + value : value;
    }
}

/* Sums of bytes need no flushing: 255 * 127 * inputs < 2^31 up to 66,000 of them, and what they pass through on the way
   may wrap around. */
INLINE void multiply_tile(const int rows, const int bits, const Tile *tile) {
    __m256 sums[TILE][2];
    for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = _mm256_setzero_ps();
    int flush = in_bytes(bits) ? tile->steps : FLUSH;
    for (int from = 0; from < tile->steps; from += flush) {
        int to = from + flush < tile->steps ? from + flush : tile->steps;
        Sums exact[TILE][CHAINS(1)];
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < CHAINS(rows); c++) exact[r][c] = sums_from(c || !in_bytes(bits) ? 0 : -tile->excess[r]);
        for (int step = from; step < to; step += CHAINS(rows)) /* steps come in eights */
            for (int c = 0; c < CHAINS(rows); c++) {
                Weights weights = weights_of(tile->panel, bits, step + c);
                for (int r = 0; r < rows; r++)
                    multiply_add(&exact[r][c], tile->x + r * tile->stride + 4 * (step + c), weights, bits);
            }
        for (int r = 0; r < rows; r++)
            for (int c = 1; c < CHAINS(rows); c++) exact[r][0] = both(exact[r][0], exact[r][c]);
        for (int r = 0; r < rows; r++)
            for (int half = 0; half < 2; half++)
                sums[r][half] = _mm256_add_ps(sums[r][half], half_of(exact[r][0], half));
    }
    for (int r = 0; r < rows; r++) finish(tile, r, sums[r][0], sums[r][1]);
}

static void multiply(int rows, const Tile *tile) {
#define CASE(R) \
    case R: \
        if (tile->layer->bits == 16) multiply_tile(R, 16, tile); \
        else multiply_tile(R, 8, tile); \
        return;
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#if TILE > 6
        CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#endif
    }
#undef CASE
}

/* This thread's share of y = x W' + b: some of the panels, for all rows. */
static void linear_part(const Linear *layer, Rounded x, int rows, float *y, int how, int thread, int threads) {
    int first, last, tiles = (rows + TILE - 1) / TILE;
    share((layer->outputs + LANES - 1) / LANES, thread, threads, &first, &last);
    Tile tile = {.layer = layer, .steps = padded(layer->inputs) / per_step(layer->bits), .how = how, .stride = x.stride};
    int64_t panel_bytes = (int64_t)padded(layer->inputs) * LANES * (layer->bits / 8);
    for (int panel = first; panel < last; panel++) {
        tile.panel = (const char *)layer->weights + panel * panel_bytes;
        tile.at = panel * LANES;
        /* As even as can be: a last tile of one row would cost as much as one of six. */
        for (int from = 0, left = tiles; left; left--) {
            int count = (rows - from + left - 1) / left;
            tile.x = x.values + from * x.stride, tile.scales = x.scales + from, tile.excess = x.excess + from;
            tile.y = y + (int64_t)from * layer->outputs + tile.at;
            multiply(count, &tile);
            from += count;
        }
    }
}

/* ---- norm, softmax, attention ---- */

typedef struct { const float *gain, *shift; float epsilon; } Norm;

static void normalise(const Norm *norm, const float *x, int width, float *y) {
    float mean = 0, spread = 0;
    for (int i = 0; i < width; i++) mean += x[i];
    mean /= width;
    for (int i = 0; i < width; i++) spread += (x[i] - mean) * (x[i] - mean);
    float factor = 1 / sqrtf(spread / width + norm->epsilon);
    for (int i = 0; i < width; i++) y[i] = (x[i] - mean) * factor * norm->gain[i] + norm->shift[i];
}

/* e^x for x <= 0, to 2e-7 relative: 2^n times a polynomial, in a form the compiler turns into vectors. */
INLINE float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    float n = floorf(x * 1.44269504f + 0.5f);
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1;
    union { int32_t i; float f; } power = {.i = ((int32_t)n + 127) << 23};
    return p * power.f;
}

/* The sum of e^(x - most): the same eight at a time. */
static float sum_of_powers(const float *x, int count, float most) {
    __m256 sum = _mm256_setzero_ps();
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 y = _mm256_max_ps(_mm256_sub_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(most)), _mm256_set1_ps(-87.0f));
        __m256 n = _mm256_round_ps(_mm256_mul_ps(y, _mm256_set1_ps(1.44269504f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), y);
        r = _mm256_fmadd_ps(n, _mm256_set1_ps(2.12194440e-4f), r);
        __m256 p = _mm256_set1_ps(1.9875691500e-4f);
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
        p = _mm256_fmadd_ps(_mm256_mul_ps(p, r), r, _mm256_add_ps(r, _mm256_set1_ps(1)));
        __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
        sum = _mm256_fmadd_ps(p, _mm256_castsi256_ps(power), sum);
    }
    float lanes[8], total = 0;
    _mm256_storeu_ps(lanes, sum);
    for (int l = 0; l < 8; l++) total += lanes[l];
    for (; i < count; i++) total += exponential(x[i] - most);
    return total;
}

/* What a query looks at: keys in some order, values `to_value` floats after their keys. */
typedef struct {
    const float *keys;
    int64_t stride, to_value;
    const int32_t *places; /* of the keys, or NULL: one after the other */
    int count;
    const uint8_t *real;   /* 0: not to be looked at; or NULL */
} Sight;

/* `heads` heads side by side, each `size` wide. Keys are the outer loop, so that memory is read from front to back. */
INLINE void attend_sized(const int size, int heads, const float *query, Sight sight, float *weights, float *context) {
    int count = sight.count;
    /* Padding at the end is left out, so that sums are formed alike however much of it there is. */
    while (sight.real && count && !sight.real[count - 1]) count--;
    float scale = 1 / sqrtf((float)size);
    for (int k = 0; k < count; k++) {
        const float *key = sight.keys + (sight.places ? sight.places[k] : k) * sight.stride;
        for (int h = 0; h < heads; h++) {
            float score = 0;
            for (int i = 0; i < size; i++) score += query[h * size + i] * key[h * size + i];
            weights[h * count + k] = sight.real && !sight.real[k] ? -INFINITY : score * scale;
        }
    }
    for (int h = 0; h < heads; h++) {
        float *mine = weights + h * count, most = -INFINITY, total = 0;
        for (int k = 0; k < count; k++) most = mine[k] > most ? mine[k] : most;
        for (int k = 0; k < count; k++) mine[k] = mine[k] == -INFINITY ? 0 : exponential(mine[k] - most);
        for (int k = 0; k < count; k++) total += mine[k];
        float factor = total > 0 ? 1 / total : 0;
        for (int k = 0; k < count; k++) mine[k] *= factor;
    }
    memset(context, 0, sizeof(float) * heads * size);
    for (int k = 0; k < count; k++) {
        const float *value = sight.keys + (sight.places ? sight.places[k] : k) * sight.stride + sight.to_value;
        for (int h = 0; h < heads; h++) {
            float weight = weights[h * count + k];
            for (int i = 0; i < size; i++) context[h * size + i] += weight * value[h * size + i];
        }
    }
}

static void attend(int size, int heads, const float *query, Sight sight, float *weights, float *context) {
    switch (size) {
        case 32: attend_sized(32, heads, query, sight, weights, context); return;
        case 64: attend_sized(64, heads, query, sight, weights, context); return;
        default: attend_sized(size, heads, query, sight, weights, context);
    }
}

/* ---- a stack of Transformer blocks: an encoder over whole texts, or a decoder one token further ---- */

typedef struct {
    Norm around_self, around_cross, around_feedforward;
    Linear project, out, query, cross_out, widen, narrow;
} Layer;

typedef struct {
    int layers, width, heads, hidden, post, gelu, cross;
    const Layer *layer;
    const Norm *last; /* NULL when the blocks end in a norm of their own */
    const Linear *head; /* NULL for an encoder */
    const float *rotary_table; /* rotary positions: for each, the cosines of a head's pairs, then their sines; or NULL */
    int halves;         /* channel i turns with i + size / 2, not 2i with 2i + 1 */
    const Linear *int8_head; /* the head in bytes, or NULL: then only the likeliest logits have all bits */
} Stack;

typedef struct {
    int rows;
    float *x;              /* rows x width: embedded tokens in, states out */
    /* encoder: rows are texts of `length` positions */
    int length;
    const uint8_t *real;   /* texts x length, or NULL */
    /* decoder: the past is a pool of slots, and every row a list of places in it, its newest last */
    float *pool;           /* layers x capacity x (key, value) */
    int64_t capacity;
    const int32_t *places; /* rows x places_per_row */
    const int32_t *lengths;
    int places_per_row;
    /* what a decoder looks at */
    int source;
    const float *const *memory; /* per layer: memories x source x (key, value) */
    const uint8_t *memory_real; /* memories x source, or NULL */
    const int32_t *memory_of;   /* which memory each row looks at */
    float *logits;
} Job;

typedef struct {
    const Stack *stack;
    const Job *job;
    Rounded rounded, bytes;
    float *wide, *context, *weights;
    int64_t longest;
    Meeting *meeting;
} Run;

static void enter(const Run *run, const Norm *norm, const Norm *pending, float *spare, int thread, int threads) {
    int from, to, width = run->stack->width;
    share(run->job->rows, thread, threads, &from, &to);
    for (int r = from; r < to; r++) {
        float *x = run->job->x + (int64_t)r * width, *y = x;
        if (pending) normalise(pending, x, width, x);
        if (norm) normalise(norm, x, width, y = spare);
        round_row(y, width, &run->rounded, r);
    }
}

/* This thread's share of all rows' heads, as runs of heads of one row. */
#define FOR_HEADS(RUN, ROW, HEAD, COUNT) \
    int from_, to_, heads_ = (RUN)->stack->heads; \
    share((RUN)->job->rows * heads_, thread, threads, &from_, &to_); \
    for (int unit_ = from_, ROW, HEAD, COUNT; \
         unit_ < to_ && (ROW = unit_ / heads_, HEAD = unit_ % heads_, \
                         COUNT = heads_ - HEAD < to_ - unit_ ? heads_ - HEAD : to_ - unit_, 1); \
         unit_ += COUNT)

/* Pairs of channels of each head turned by the angles of one position (Su et al. 2021, 3.2). */
static void turn(float *x, int heads, int size, const float *angles, int halves) {
    int pairs = size / 2, apart = halves ? pairs : 1, step = halves ? 1 : 2;
    for (int h = 0; h < heads; h++, x += size)
        for (int i = 0; i < pairs; i++) {
            float *one = x + i * step, *other = one + apart, was = *one;
            *one = was * angles[i] - *other * angles[pairs + i];
            *other = was * angles[pairs + i] + *other * angles[i];
        }
}

static const float *angles_of(const Run *run, int row, int size) {
    const Job *job = run->job;
    int64_t place = job->pool ? job->lengths[row] - 1 : row % job->length;
    return run->stack->rotary_table + place * size;
}

/* Queries and keys of this thread's share of the heads, by the place of each row: of all of a text before anybody looks
   around in it, or of the newest token of what is written. */
static void turn_self(const Run *run, int thread, int threads) {
    int width = run->stack->width, size = width / run->stack->heads;
    FOR_HEADS(run, row, head, count) {
        float *mine = run->wide + (int64_t)row * 3 * width + head * size;
        const float *angles = angles_of(run, row, size);
        turn(mine, count, size, angles, run->stack->halves);
        turn(mine + width, count, size, angles, run->stack->halves);
    }
}

static void look_around(const Run *run, int layer, float *weights, int thread, int threads) {
    const Job *job = run->job;
    int width = run->stack->width, size = width / run->stack->heads;
    FOR_HEADS(run, row, head, count) {
        int at = head * size;
        float *mine = run->wide + (int64_t)row * 3 * width + at;
        Sight sight = {.to_value = width};
        if (job->pool) {
            float *past = job->pool + (int64_t)layer * job->capacity * 2 * width + at;
            sight.keys = past, sight.stride = 2 * width;
            sight.places = job->places + (int64_t)row * job->places_per_row, sight.count = job->lengths[row];
            float *newest = past + (int64_t)sight.places[sight.count - 1] * 2 * width;
            memcpy(newest, mine + width, sizeof(float) * count * size);
            memcpy(newest + width, mine + 2 * width, sizeof(float) * count * size);
        } else {
            int64_t text = row / job->length * job->length;
            sight.keys = run->wide + text * 3 * width + width + at, sight.stride = 3 * width;
            sight.count = job->length, sight.real = job->real ? job->real + text : NULL;
        }
        attend(size, count, mine, sight, weights, run->context + (int64_t)row * width + at);
    }
}

static void look_at_memory(const Run *run, int layer, float *weights, int thread, int threads) {
    const Job *job = run->job;
    int width = run->stack->width, size = width / run->stack->heads;
    FOR_HEADS(run, row, head, count) {
        int64_t at = head * size, first = (int64_t)job->memory_of[row] * job->source;
        Sight sight = {.keys = job->memory[layer] + first * 2 * width + at, .stride = 2 * width, .to_value = width,
                       .count = job->source, .real = job->memory_real ? job->memory_real + first : NULL};
        float *mine = run->wide + row * (int64_t)width + at;
        if (run->stack->rotary_table) turn(mine, count, size, angles_of(run, row, size), run->stack->halves);
        attend(size, count, mine, sight, weights, run->context + row * (int64_t)width + at);
    }
}

/* The `best` highest of a row, highest first; of equals the lower. */
static void find_best(const float *row, int count, int best, float *values, int64_t *places) {
    int found = 0;
    /* Sorted insertion: after the first few, hardly any passes the least of the best. */
    for (int block = 0; block < count; block += 8) {
        unsigned higher = count - block < 8 ? (1u << (count - block)) - 1 : 255;
        if (found == best && higher == 255)
            higher = _mm256_movemask_ps(
                _mm256_cmp_ps(_mm256_loadu_ps(row + block), _mm256_set1_ps(values[best - 1]), _CMP_GT_OQ));
        for (; higher; higher &= higher - 1) {
            int v = block + __builtin_ctz(higher);
            if (found == best && row[v] <= values[best - 1]) continue;
            int at = found < best ? found++ : best - 1;
            for (; at > 0 && values[at - 1] < row[v]; at--) values[at] = values[at - 1], places[at] = places[at - 1];
            values[at] = row[v], places[at] = v;
        }
    }
}

/* Of this thread's share of the rows, the logits that may matter with all bits: the panels that hold the likeliest.
   Whole panels, for they are what is read at once. */
static void sharpen(const Run *run, int thread, int threads) {
    const Linear *head = run->stack->head;
    int from, to, last = -1;
    int64_t panel_bytes = (int64_t)padded(head->inputs) * LANES * (head->bits / 8), places[SHARP];
    float values[SHARP];
    Tile tile = {.layer = head, .steps = padded(head->inputs) / per_step(head->bits), .stride = run->rounded.stride};
    share(run->job->rows, thread, threads, &from, &to);
    for (int r = from; r < to; r++) {
        float *y = run->job->logits + (int64_t)r * head->outputs;
        find_best(y, head->outputs, SHARP, values, places);
        tile.x = run->rounded.values + r * run->rounded.stride;
        tile.scales = run->rounded.scales + r, tile.excess = run->rounded.excess + r;
        for (int k = 0; k < SHARP; k++) {
            int panel = (int)(places[k] / LANES);
            for (last = 0; last < k && places[last] / LANES != panel; last++);
            if (last < k) continue; /* done already */
            tile.panel = (const char *)head->weights + panel * panel_bytes;
            tile.at = panel * LANES, tile.y = y + tile.at;
            multiply(1, &tile);
        }
    }
}

static void run_part(const Run *run, int thread, int threads) {
    const Stack *stack = run->stack;
    const Job *job = run->job;
    int rows = job->rows, width = stack->width;
    float *weights = run->weights + thread * run->longest, *x = job->x;
    const Norm *pending = NULL;
    /* Before a sub-layer: its own norm (pre), or the one that closes the sub-layer before it (post). */
#define ENTER(NORM) \
    enter(run, stack->post ? NULL : (NORM), pending, weights, thread, threads); \
    pending = stack->post ? (NORM) : NULL; \
    meet(run->meeting, threads)
#define LINEAR(LAYER, X, Y, HOW) \
    linear_part(LAYER, X, rows, Y, HOW, thread, threads); \
    meet(run->meeting, threads)
#define LEAVE(LAYER) \
    meet(run->meeting, threads); \
    round_rows(run->rounded, run->context, rows, width, thread, threads); \
    meet(run->meeting, threads); \
    LINEAR(LAYER, run->rounded, x, ADD)
    for (int l = 0; l < stack->layers; l++) {
        const Layer *layer = stack->layer + l;
        ENTER(&layer->around_self);
        LINEAR(&layer->project, run->rounded, run->wide, 0);
        if (stack->rotary_table) {
            turn_self(run, thread, threads);
            if (!job->pool) meet(run->meeting, threads);
        }
        look_around(run, l, weights, thread, threads);
        LEAVE(&layer->out);
        if (stack->cross) {
            ENTER(&layer->around_cross);
            LINEAR(&layer->query, run->rounded, run->wide, 0);
            look_at_memory(run, l, weights, thread, threads);
            LEAVE(&layer->cross_out);
        }
        ENTER(&layer->around_feedforward);
        LINEAR(&layer->widen, run->rounded, run->wide, stack->gelu ? GELU : RELU);
        round_rows(run->rounded, run->wide, rows, stack->hidden, thread, threads);
        meet(run->meeting, threads);
        LINEAR(&layer->narrow, run->rounded, x, ADD);
    }
    int from, to;
    share(rows, thread, threads, &from, &to);
    const Norm *last = pending ? pending : stack->last;
    if (last) for (int r = from; r < to; r++) normalise(last, x + (int64_t)r * width, width, x + (int64_t)r * width);
    if (stack->head) {
        round_rows(run->rounded, x, rows, width, thread, threads);
        if (stack->int8_head) round_rows(run->bytes, x, rows, width, thread, threads);
        meet(run->meeting, threads);
        if (stack->int8_head) {
            LINEAR(stack->int8_head, run->bytes, job->logits, 0);
            sharpen(run, thread, threads);
        } else {
            linear_part(stack->head, run->rounded, rows, job->logits, 0, thread, threads);
        }
    }
#undef ENTER
#undef LINEAR
#undef LEAVE
}

static int larger(int a, int b) { return a > b ? a : b; }

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

static int64_t rounded_bytes(int inputs, int64_t rows) {
    return rows * (stride_of(inputs) + sizeof(float) + sizeof(int32_t)) + 3 * 64;
}

static Rounded make_rounded(char **next, int inputs, int64_t rows, int bits) {
    Rounded rounded = {.stride = stride_of(inputs), .bits = bits};
    rounded.values = part(next, rows * rounded.stride);
    rounded.scales = part(next, rows * sizeof(float));
    rounded.excess = part(next, rows * sizeof(int32_t));
    return rounded;
}

/* 0, or 1 when memory ran out. */
int run_stack(const Stack *stack, const Job *job, int threads) {
    int width = stack->width, widest = larger(3 * width, stack->hidden);
    int64_t longest = larger(stack->heads * larger(larger(job->length, job->source), job->places_per_row), width);
    int64_t rows = job->rows;
    double weights = (double)width * (stack->cross ? 6 * width : 4 * width) + 2.0 * width * stack->hidden;
    threads = enough(threads, rows * weights);
    Meeting meeting = {0};
    Run run = {.stack = stack, .job = job, .longest = longest, .meeting = &meeting};
    int64_t inputs = rounded_bytes(larger(width, stack->hidden), rows) + (stack->int8_head ? rounded_bytes(width, rows) : 0);
    char *next = scratch(inputs + (rows * (widest + width) + threads * longest) * sizeof(float) + 3 * 64);
    if (!next) return 1;
    run.rounded = make_rounded(&next, larger(width, stack->hidden), rows, stack->layer->project.bits);
    if (stack->int8_head) run.bytes = make_rounded(&next, width, rows, stack->int8_head->bits);
    run.wide = part(&next, rows * widest * sizeof(float));
    run.context = part(&next, rows * width * sizeof(float));
    run.weights = part(&next, threads * longest * sizeof(float));
#pragma omp parallel num_threads(threads)
    run_part(&run, omp_get_thread_num(), omp_get_num_threads());
    return 0;
}

typedef struct { const Linear *layer; const float *x; float *y; int rows; Rounded rounded; Meeting *meeting; } Product;

static void product_part(const Product *p, int thread, int threads) {
    round_rows(p->rounded, p->x, p->rows, p->layer->inputs, thread, threads);
    meet(p->meeting, threads);
    linear_part(p->layer, p->rounded, p->rows, p->y, 0, thread, threads);
}

int run_linear(const Linear *layer, const float *x, int rows, float *y, int threads) {
    Meeting meeting = {0};
    char *next = scratch(rounded_bytes(layer->inputs, rows));
    if (!next) return 1;
    Product product = {layer, x, y, rows, make_rounded(&next, layer->inputs, rows, layer->bits), &meeting};
    threads = enough(threads, (double)rows * layer->inputs * layer->outputs);
#pragma omp parallel num_threads(threads)
    product_part(&product, omp_get_thread_num(), omp_get_num_threads());
    return 0;
}

/* ---- the likeliest tokens ---- */

/* The `best` highest of each row, as natural log-probabilities, highest first; of equals the lower token. */
void choose_best(const float *logits, int rows, int vocabulary, int best, float *logprobs, int64_t *chosen, int threads) {
    threads = enough(threads, 8.0 * rows * vocabulary);
#pragma omp parallel for num_threads(threads)
    for (int r = 0; r < rows; r++) {
        const float *row = logits + (int64_t)r * vocabulary;
        float *values = logprobs + (int64_t)r * best;
        int64_t *tokens = chosen + (int64_t)r * best;
        find_best(row, vocabulary, best, values, tokens);
        float most = values[0], shift = most + logf(sum_of_powers(row, vocabulary, most));
        for (int k = 0; k < best; k++) values[k] -= shift;
    }
}

/* ---- training: cross-entropy, and dropout with its sum ---- */

/* Per row: -log p(label) and the mean of -log p over the vocabulary; logits become the gradient of
   (1 - smoothing) * the one + smoothing * the other, if that is wanted. */
void cross_entropy(float *logits, const int64_t *labels, int rows, int vocabulary, float smoothing, int gradient,
                   float *likelihood, float *uniform, int threads) {
    threads = enough(threads, 30.0 * rows * vocabulary);
#pragma omp parallel for num_threads(threads)
    for (int r = 0; r < rows; r++) {
        float *row = logits + (int64_t)r * vocabulary, most = row[0], total = 0, sum = 0;
        for (int v = 1; v < vocabulary; v++) most = row[v] > most ? row[v] : most;
        for (int v = 0; v < vocabulary; v++) sum += row[v];
        float label = row[labels[r]];
        if (gradient) {
            for (int v = 0; v < vocabulary; v++) {
                float power = exponential(row[v] - most);
                row[v] = power;
                total += power;
            }
            float factor = 1 / total, even = smoothing / vocabulary;
            for (int v = 0; v < vocabulary; v++) row[v] = row[v] * factor - even;
            row[labels[r]] -= 1 - smoothing;
        } else {
            for (int v = 0; v < vocabulary; v++) total += exponential(row[v] - most);
        }
        float shift = most + logf(total);
        likelihood[r] = shift - label;
        uniform[r] = shift - sum / vocabulary;
    }
}

/* A random number that depends on the seed and the place alone: no order of threads can change it (Salmon et al.
   2011 call such generators counter-based; the mixing is SplitMix64's). One draw decides four neighbours. */
INLINE uint64_t draw(uint64_t seed, uint64_t place) {
    uint64_t z = seed + (place + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* y = x + dropped(f), or y = dropped(f) where x is NULL: the same places are dropped for the same seed. */
void add_dropped(const float *x, const float *f, float *y, int64_t count, uint64_t seed, int limit, float factor,
                 int threads) {
    int64_t blocks = (count + 63) / 64;
    threads = enough(threads, 10.0 * count);
#pragma omp parallel for num_threads(threads)
    for (int64_t block = 0; block < blocks; block++) {
        uint64_t bits[16];
        uint16_t parts[64];
        for (int i = 0; i < 16; i++) bits[i] = draw(seed, block * 16 + i);
        memcpy(parts, bits, sizeof parts);
        int64_t from = block * 64;
        int length = count - from < 64 ? (int)(count - from) : 64;
        if (x) for (int i = 0; i < length; i++) y[from + i] = x[from + i] + (parts[i] >= limit ? f[from + i] * factor : 0);
        else for (int i = 0; i < length; i++) y[from + i] = parts[i] >= limit ? f[from + i] * factor : 0;
    }
}

/* For a test: the caller declares the same structures once more. */
void structure_sizes(int sizes[5]) {
    sizes[0] = sizeof(Linear), sizes[1] = sizeof(Norm), sizes[2] = sizeof(Layer), sizes[3] = sizeof(Stack);
    sizes[4] = sizeof(Job);
}
