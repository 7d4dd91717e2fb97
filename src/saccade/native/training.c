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
