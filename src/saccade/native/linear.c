/* ---- linear layers on integers ---- */

#define LANES 16        /* outputs of a panel: two vectors of eight sums, or one of sixteen */
#ifdef __AVX512VNNI__
#define TILE 12         /* rows that share one pass over a panel: as many as the registers hold */
#define CHAINS(rows) ((rows) < 4 ? 4 : 1) /* sums side by side for each row: one alone waits four cycles for itself */
#else
#define TILE 6
#define CHAINS(rows) 1
#endif
#define FLUSH 128       /* pairs of 16-bit inputs summed as integers: 2 * 128 * 2032 * 4095 < 2^31 */
#define FLUSH_BYTES 8192 /* fours of bytes likewise: 4 * 8192 * 255 * 127 < 2^31 */
#define BLOCK_BYTES 196608 /* of rounded rows that are kept in the second cache while all panels pass over them */

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

/* Numbers times a factor as integers: bytes, or sixteen bits each. */
static void round_numbers(const float *x, int count, float inverse, int bytes, char *values) {
    __m256 factor = _mm256_set1_ps(inverse);
    int8_t *small = (int8_t *)values;
    int16_t *large = (int16_t *)values;
    int i = 0;
    for (; i + 16 <= count; i += 16) {
        __m256i sixteen = sixteen_rounded(x + i, factor);
        if (bytes)
            _mm_storeu_si128((__m128i *)(small + i),
                             _mm_packs_epi16(_mm256_castsi256_si128(sixteen), _mm256_extracti128_si256(sixteen, 1)));
        else _mm256_storeu_si256((__m256i *)(large + i), sixteen);
    }
    for (; i < count; i++)
        if (bytes) small[i] = (int8_t)lrintf(x[i] * inverse);
        else large[i] = (int16_t)lrintf(x[i] * inverse);
}

static void round_row(const float *x, int count, const Rounded *rounded, int row) {
    int bytes = in_bytes(rounded->bits), largest = bytes ? 127 : 4095, size = bytes ? 1 : 2, sum = 0;
    char *values = rounded->values + row * rounded->stride;
    float most = largest_size(x, count);
    rounded->scales[row] = most / largest;
    round_numbers(x, count, most > 0 ? largest / most : 0, bytes, values);
    memset(values + (int64_t)count * size, 0, (int64_t)(padded(count) - count) * size);
    if (bytes) for (int k = 0; k < count; k++) sum += ((const int8_t *)values)[k];
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

/* Some rows of one panel of a layer. */
typedef struct {
    const Linear *layer;
    const void *panel;
    int at, steps, add; /* add: to what stands there */
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
    int lanes = tile->layer->outputs - tile->at;
    float *y = tile->y + (int64_t)row * tile->layer->outputs;
    if (lanes >= LANES) {
        if (tile->add) {
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
    for (int l = 0; l < lanes; l++) y[l] = tile->add ? y[l] + values[l] : values[l];
}

INLINE void multiply_tile(const int rows, const int bits, const Tile *tile) {
    __m256 sums[TILE][2];
    for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = _mm256_setzero_ps();
    int flush = in_bytes(bits) ? FLUSH_BYTES : FLUSH;
    for (int from = 0; from < tile->steps; from += flush) {
        int to = from + flush < tile->steps ? from + flush : tile->steps;
        Sums exact[TILE][CHAINS(1)];
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < CHAINS(rows); c++) exact[r][c] = sums_from(c || from || !in_bytes(bits) ? 0 : -tile->excess[r]);
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

/* This thread's share of y = x W' + b, or of y += x W' + b: some of the panels, for all rows. Many rows are taken in
   blocks that the second cache holds, so that they are not read from afar once more for every panel. */
static void linear_part(const Linear *layer, Rounded x, int rows, float *y, int add, int thread, int threads) {
    int first, last, block = larger(TILE, (int)(BLOCK_BYTES / x.stride) / TILE * TILE);
    share((layer->outputs + LANES - 1) / LANES, thread, threads, &first, &last);
    Tile tile = {.layer = layer, .steps = padded(layer->inputs) / per_step(layer->bits), .add = add, .stride = x.stride};
    int64_t panel_bytes = (int64_t)padded(layer->inputs) * LANES * (layer->bits / 8);
    for (int begin = 0; begin < rows; begin += block) {
        int end = begin + block < rows ? begin + block : rows, tiles = (end - begin + TILE - 1) / TILE;
        for (int panel = first; panel < last; panel++) {
            tile.panel = (const char *)layer->weights + panel * panel_bytes;
            tile.at = panel * LANES;
            /* As even as can be: a last tile of one row would cost as much as one of six. */
            for (int from = begin, left = tiles; left; left--) {
                int count = (end - from + left - 1) / left;
                tile.x = x.values + from * x.stride, tile.scales = x.scales + from, tile.excess = x.excess + from;
                tile.y = y + (int64_t)from * layer->outputs + tile.at;
                multiply(count, &tile);
                from += count;
            }
        }
    }
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
