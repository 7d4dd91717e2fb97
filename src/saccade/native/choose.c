/* ---- the likeliest tokens ---- */

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
