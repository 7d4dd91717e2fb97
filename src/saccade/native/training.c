/* ---- training: cross-entropy, dropout with its sum, and heads that are taken apart ---- */

INLINE float from_bfloat16(uint16_t rounded) {
    uint32_t bits = (uint32_t)rounded << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* To the nearest, ties to even, as PyTorch rounds; what is no number stays none. */
INLINE uint16_t to_bfloat16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return (bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC0 : (uint16_t)rounded;
}

/* Numbers in memory are float32, or bfloat16 where `rounded`. */
INLINE void load(const void *from, int rounded, float *to, int count) {
    if (rounded) for (int i = 0; i < count; i++) to[i] = from_bfloat16(((const uint16_t *)from)[i]);
    else if (from != to) memcpy(to, from, count * sizeof *to);
}

INLINE void store(const float *from, int rounded, void *to, int count) {
    if (rounded) for (int i = 0; i < count; i++) ((uint16_t *)to)[i] = to_bfloat16(from[i]);
    else if (from != to) memcpy(to, from, count * sizeof *from);
}

/* Per row: -log p(label) and the mean of -log p over the vocabulary; logits become the gradient of
   (1 - smoothing) * the one + smoothing * the other, if that is wanted. */
void cross_entropy(void *logits, int rounded, const int64_t *labels, int rows, int vocabulary, float smoothing,
                   int gradient, float *likelihood, float *uniform, int threads) {
    threads = enough(threads, 30.0 * rows * vocabulary);
#pragma omp parallel num_threads(threads)
    {
        float *widened = rounded ? malloc(vocabulary * sizeof *widened) : NULL;
#pragma omp for
        for (int r = 0; r < rows; r++) {
            void *here = (char *)logits + (int64_t)r * vocabulary * (rounded ? 2 : 4);
            float *row = rounded ? widened : here, total = 0, sum = 0;
            load(here, rounded, row, vocabulary);
            float most = row[0], label = row[labels[r]];
            for (int v = 1; v < vocabulary; v++) most = row[v] > most ? row[v] : most;
            for (int v = 0; v < vocabulary; v++) sum += row[v];
            if (gradient) {
                for (int v = 0; v < vocabulary; v++) {
                    float power = exponential(row[v] - most);
                    row[v] = power;
                    total += power;
                }
                float factor = 1 / total, even = smoothing / vocabulary;
                for (int v = 0; v < vocabulary; v++) row[v] = row[v] * factor - even;
                row[labels[r]] -= 1 - smoothing;
                store(row, rounded, here, vocabulary);
            } else {
                for (int v = 0; v < vocabulary; v++) total += exponential(row[v] - most);
            }
            float shift = most + logf(total);
            likelihood[r] = shift - label;
            uniform[r] = shift - sum / vocabulary;
        }
        free(widened);
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

/* Pair i is turned by the angle whose cosine and sine are given; `halves`: it is channels i and i + width / 2, else
   2 i and 2 i + 1. Backwards (the transposed matrix) with `sign` -1. */
INLINE void turn_head(const float *x, float *y, int width, const float *cosines, const float *sines, float sign, int halves) {
    int pairs = width / 2;
    if (halves) {
        for (int i = 0; i < pairs; i++) {
            y[i] = x[i] * cosines[i] - sign * x[i + pairs] * sines[i];
            y[i + pairs] = sign * x[i] * sines[i] + x[i + pairs] * cosines[i];
        }
    } else {
        for (int i = 0; i < pairs; i++) {
            y[2 * i] = x[2 * i] * cosines[i] - sign * x[2 * i + 1] * sines[i];
            y[2 * i + 1] = sign * x[2 * i] * sines[i] + x[2 * i + 1] * cosines[i];
        }
    }
}

enum { MOST_HEAD_WIDTH = 512 };

/* Copies the heads of every token, from bfloat16 or to it or neither, turned by their position where there are
   cosines: [positions, width / 2]. Strides count numbers: of rows, positions and heads. */
void copy_heads(const void *from, const int64_t *from_strides, int from_rounded, void *to, const int64_t *to_strides,
                int to_rounded, int rows, int positions, int heads, int width, const float *cosines,
                const float *sines, int backwards, int halves, int threads) {
    threads = enough(threads, 4.0 * rows * positions * heads * width);
#pragma omp parallel for num_threads(threads)
    for (int64_t token = 0; token < (int64_t)rows * positions; token++) {
        int64_t row = token / positions, position = token % positions;
        for (int head = 0; head < heads; head++) {
            int64_t source = row * from_strides[0] + position * from_strides[1] + head * from_strides[2];
            int64_t target = row * to_strides[0] + position * to_strides[1] + head * to_strides[2];
            float x[MOST_HEAD_WIDTH], y[MOST_HEAD_WIDTH];
            load((const char *)from + source * (from_rounded ? 2 : 4), from_rounded, x, width);
            const float *angle = cosines ? cosines + position * (width / 2) : NULL;
            if (angle) turn_head(x, y, width, angle, sines + position * (width / 2), backwards ? -1 : 1, halves);
            store(angle ? y : x, to_rounded, (char *)to + target * (to_rounded ? 2 : 4), width);
        }
    }
}
