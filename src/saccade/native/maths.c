/* ---- norms, powers of e, and what stands between the two matrices of a feed-forward network ---- */

typedef struct { const float *gain, *shift; float epsilon; } Norm; /* shift NULL: an RMS norm, which has no mean either */

static void normalise(const Norm *norm, const float *x, int width, float *y) {
    float mean = 0, spread = 0;
    if (!norm->shift) {
        for (int i = 0; i < width; i++) spread += x[i] * x[i];
        float factor = 1 / sqrtf(spread / width + norm->epsilon);
        for (int i = 0; i < width; i++) y[i] = x[i] * factor * norm->gain[i];
        return;
    }
    for (int i = 0; i < width; i++) mean += x[i];
    mean /= width;
    for (int i = 0; i < width; i++) spread += (x[i] - mean) * (x[i] - mean);
    float factor = 1 / sqrtf(spread / width + norm->epsilon);
    for (int i = 0; i < width; i++) y[i] = (x[i] - mean) * factor * norm->gain[i] + norm->shift[i];
}

/* e^x to 2e-7 relative, from -87 to 87: 2^n times a polynomial, in a form the compiler turns into vectors. Below, and
   for NaN, e^-87. */
INLINE float exponential(float x) {
    x = x > -87.0f ? x : -87.0f;
    x = x < 87.0f ? x : 87.0f;
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

/* The same eight at a time. */
INLINE __m256 eight_exponentials(__m256 x) {
    x = _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(-87.0f)), _mm256_set1_ps(87.0f));
    __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(2.12194440e-4f), r);
    __m256 p = _mm256_set1_ps(1.9875691500e-4f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
    p = _mm256_fmadd_ps(_mm256_mul_ps(p, r), r, _mm256_add_ps(r, _mm256_set1_ps(1)));
    __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

INLINE float sum_of_lanes(__m256 lanes) {
    float each[8], total = 0;
    _mm256_storeu_ps(each, lanes);
    for (int l = 0; l < 8; l++) total += each[l];
    return total;
}

/* The sum of e^(x - most). */
static float sum_of_powers(const float *x, int count, float most) {
    __m256 sum = _mm256_setzero_ps();
    int i = 0;
    for (; i + 8 <= count; i += 8)
        sum = _mm256_add_ps(sum, eight_exponentials(_mm256_sub_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(most))));
    float total = sum_of_lanes(sum);
    for (; i < count; i++) total += exponential(x[i] - most);
    return total;
}

/* e^(x - most) in the place of x; their sum. Written out, so that sums are formed alike however rows are aligned. */
static float powers(float *x, int count, float most) {
    __m256 sum = _mm256_setzero_ps();
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 power = eight_exponentials(_mm256_sub_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(most)));
        _mm256_storeu_ps(x + i, power);
        sum = _mm256_add_ps(sum, power);
    }
    float total = sum_of_lanes(sum);
    for (; i < count; i++) total += x[i] = exponential(x[i] - most);
    return total;
}

enum { RELU, GELU, GELU_TANH, SILU };

INLINE float relu(float x) { return x > 0 ? x : 0; }

INLINE float silu(float x) { return x / (1 + exponential(-x)); }

/* x Φ(x); the error function by Abramowitz and Stegun 7.1.26, to 1.5e-7. */
INLINE float gelu(float x) {
    float z = fabsf(x) * 0.70710678f, t = 1 / (1 + 0.3275911f * z);
    float p = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    float tail = 0.5f * p * exponential(-z * z); /* 1 - Φ(|x|) */
    return x * (x > 0 ? 1 - tail : tail);
}

/* GPT-2's: 0.5 x (1 + tanh u) = x / (1 + e^-2u). */
INLINE float gelu_tanh(float x) { return x / (1 + exponential(-1.59576912f * (x + 0.044715f * x * x * x))); }

/* The inner row of a feed-forward network, in its place: f(x), or, gated, f(x) times what stands `width` after x. */
static void activate(float *x, int width, int activation, int gated) {
    const float *gate = x + width;
#define CASE(NAME, FUNCTION) \
    case NAME: \
        if (gated) for (int i = 0; i < width; i++) x[i] = FUNCTION(x[i]) * gate[i]; \
        else for (int i = 0; i < width; i++) x[i] = FUNCTION(x[i]); \
        return;
    switch (activation) { CASE(RELU, relu) CASE(GELU, gelu) CASE(GELU_TANH, gelu_tanh) CASE(SILU, silu) }
#undef CASE
}
