/* ---- attention: a single query over scattered keys, or all queries of a text over its keys ---- */

/* What a query looks at: keys in some order, values `to_value` floats after their keys. */
typedef struct {
    const float *keys;
    int64_t stride, to_value;
    const int32_t *places; /* of the keys, or NULL: one after the other */
    int count;
} Sight;

INLINE const float *key_at(const Sight *sight, int k) {
    return sight->keys + (sight->places ? sight->places[k] : k) * sight->stride;
}

/* The softmax of scores in their place. */
static void softmax(float *scores, int count) {
    float most = -INFINITY;
    for (int k = 0; k < count; k++) most = scores[k] > most ? scores[k] : most;
    float factor = 1 / powers(scores, count, most);
    for (int k = 0; k < count; k++) scores[k] *= factor;
}

/* `heads` query heads side by side, each `size` wide, of which `shared` look at the same head of keys; `first` of its
   queries have been seen to. Keys are the outer loop, so that memory is read from front to back. */
INLINE void attend_sized(const int size, const int shared, int first, int heads, const float *query, Sight sight,
                         float *weights, float *context) {
    int count = sight.count;
    float scale = 1 / sqrtf((float)size);
    for (int k = 0; k < count; k++) {
        const float *key = key_at(&sight, k);
        for (int h = 0; h < heads; h++) {
            const float *mine = key + (first + h) / shared * size;
            float score = 0;
            for (int i = 0; i < size; i++) score += query[h * size + i] * mine[i];
            weights[h * count + k] = score * scale;
        }
    }
    for (int h = 0; h < heads; h++) softmax(weights + h * count, count);
    memset(context, 0, sizeof(float) * heads * size);
    for (int k = 0; k < count; k++) {
        const float *value = key_at(&sight, k) + sight.to_value;
        for (int h = 0; h < heads; h++) {
            const float *mine = value + (first + h) / shared * size;
            float weight = weights[h * count + k];
            for (int i = 0; i < size; i++) context[h * size + i] += weight * mine[i];
        }
    }
}

static void attend(int size, int shared, int first, int heads, const float *query, Sight sight, float *weights,
                   float *context) {
#define CASE(SIZE) \
    case SIZE: \
        if (shared == 1) attend_sized(SIZE, 1, first, heads, query, sight, weights, context); \
        else attend_sized(SIZE, shared, first, heads, query, sight, weights, context); \
        return;
    switch (size) {
        CASE(32) CASE(64)
        default: attend_sized(size, shared, first, heads, query, sight, weights, context);
    }
#undef CASE
}

/* All queries of a text at once, one head: some queries share a pass over the keys, of which sixteen lie side by side for
   each channel. A query's sums are formed alike whoever else is in its group. */
#define KEYS 16
#ifdef __AVX512F__
#define QUERIES 12 /* as many sums as the registers hold: the keys of a long text come from the second cache */
typedef __m512 Sixteen;
INLINE Sixteen no_sixteen(void) { return _mm512_setzero_ps(); }
INLINE Sixteen load_sixteen(const float *x) { return _mm512_loadu_ps(x); }
INLINE Sixteen add_product(Sixteen sum, float factor, Sixteen x) { return _mm512_fmadd_ps(_mm512_set1_ps(factor), x, sum); }
INLINE void store_scaled(float *to, Sixteen x, float factor) { _mm512_storeu_ps(to, _mm512_mul_ps(x, _mm512_set1_ps(factor))); }
#else
#define QUERIES 6
typedef struct { __m256 half[2]; } Sixteen;
INLINE Sixteen no_sixteen(void) { return (Sixteen){{_mm256_setzero_ps(), _mm256_setzero_ps()}}; }
INLINE Sixteen load_sixteen(const float *x) { return (Sixteen){{_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)}}; }
INLINE Sixteen add_product(Sixteen sum, float factor, Sixteen x) {
    for (int half = 0; half < 2; half++)
        sum.half[half] = _mm256_fmadd_ps(_mm256_set1_ps(factor), x.half[half], sum.half[half]);
    return sum;
}
INLINE void store_scaled(float *to, Sixteen x, float factor) {
    for (int half = 0; half < 2; half++) _mm256_storeu_ps(to + 8 * half, _mm256_mul_ps(x.half[half], _mm256_set1_ps(factor)));
}
#endif

static int in_sixteens(int count) { return (count + KEYS - 1) / KEYS * KEYS; }

/* Floats that one thread needs for texts of so many keys. */
static int64_t attention_room(int keys, int size) {
    return (int64_t)in_sixteens(keys) * (size + in_sixteens(size) + QUERIES) + KEYS;
}

typedef struct {
    int size, keys;
    float *turned;  /* keys: sixteens x size x 16 */
    float *values;  /* keys x size, rows padded to sixteens */
    float *scores;  /* queries x keys */
} Gathered;

static Gathered gather(float *room, int size, const Sight *sight) {
    int keys = sight->count, wide = in_sixteens(size);
    Gathered all = {.size = size, .keys = keys, .turned = room};
    all.values = room + (int64_t)in_sixteens(keys) * size;
    all.scores = all.values + (int64_t)in_sixteens(keys) * wide;
    for (int from = 0; from < keys; from += KEYS) {
        float *block = all.turned + (int64_t)from * size;
        for (int k = 0; k < KEYS; k++) {
            const float *key = from + k < keys ? key_at(sight, from + k) : NULL;
            for (int i = 0; i < size; i++) block[i * KEYS + k] = key ? key[i] : 0;
        }
    }
    for (int k = 0; k < keys; k++) {
        float *value = all.values + (int64_t)k * wide;
        memcpy(value, key_at(sight, k) + sight->to_value, sizeof(float) * size);
        for (int i = size; i < wide; i++) value[i] = 0;
    }
    return all;
}

/* Products of `count` rows with sixteen columns: row r's factor of step i stands at a[r * stride + i]. */
INLINE void rows_by_sixteen(const int count, const float *a, int64_t stride, const float *b, int64_t b_stride, int steps,
                            Sixteen sums[QUERIES]) {
    for (int r = 0; r < count; r++) sums[r] = no_sixteen();
    for (int i = 0; i < steps; i++, b += b_stride) {
        Sixteen columns = load_sixteen(b);
        for (int r = 0; r < count; r++) sums[r] = add_product(sums[r], a[r * stride + i], columns);
    }
}

/* Some queries, the first of which sees keys up to `sees`, each next one one more if `causal`; none looks further back
   than `window` keys, unless that is 0. */
typedef struct {
    const float *query;
    int64_t query_stride;
    float *context;
    int64_t context_stride;
    int sees, causal, window;
} Queries;

INLINE int first_seen(const Queries *queries, int row) {
    int sees = queries->sees + queries->causal * row;
    return queries->window && sees > queries->window ? sees - queries->window : 0;
}

INLINE void attend_together(const int count, const Gathered *all, const Queries *queries) {
    int size = all->size, wide = in_sixteens(size), row_of_scores = in_sixteens(all->keys);
    int last = queries->sees + queries->causal * (count - 1), first = first_seen(queries, 0) / KEYS * KEYS;
    float factors[QUERIES], scale = 1 / sqrtf((float)size);
    Sixteen sums[QUERIES];
    for (int from = first; from < last; from += KEYS) {
        rows_by_sixteen(count, queries->query, queries->query_stride, all->turned + (int64_t)from * size, KEYS, size, sums);
        for (int r = 0; r < count; r++) store_scaled(all->scores + r * row_of_scores + from, sums[r], scale);
    }
    for (int r = 0; r < count; r++) {
        float *mine = all->scores + r * row_of_scores, most = -INFINITY;
        int begin = first_seen(queries, r), end = queries->sees + queries->causal * r;
        for (int k = begin; k < end; k++) most = mine[k] > most ? mine[k] : most;
        factors[r] = 1 / powers(mine + begin, end - begin, most);
        for (int k = first; k < begin; k++) mine[k] = 0;
        for (int k = end; k < last; k++) mine[k] = 0;
    }
    for (int from = 0; from < size; from += KEYS) {
        rows_by_sixteen(count, all->scores + first, row_of_scores, all->values + (int64_t)first * wide + from, wide,
                        last - first, sums);
        for (int r = 0; r < count; r++) {
            float found[KEYS], *to = queries->context + r * queries->context_stride + from;
            store_scaled(found, sums[r], factors[r]);
            memcpy(to, found, sizeof(float) * (size - from < KEYS ? size - from : KEYS));
        }
    }
}

/* All of a text's queries, some at a time. */
static void attend_all(const Gathered *all, Queries queries, int rows) {
    for (int done = 0; done < rows;) {
        int count = rows - done < QUERIES ? rows - done : QUERIES;
        switch (count) {
#define CASE(N) case N: attend_together(N, all, &queries); break;
            CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#if QUERIES > 6
            CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#endif
#undef CASE
        }
        done += count, queries.sees += queries.causal * count;
        queries.query += count * queries.query_stride, queries.context += count * queries.context_stride;
    }
}
