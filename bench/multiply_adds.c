/* Integer multiply-adds in registers alone, as many a second as the processor can do: nothing is read from memory.
   Compiled and timed by bench/limits.py. Each function returns how many it did. */

#include <immintrin.h>

#ifdef __AVX512BW__
typedef __m512i Vector;
#define OF(name) _mm512_##name
#else
typedef __m256i Vector;
#define OF(name) _mm256_##name
#endif

#ifdef __AVX512VNNI__
#define WORDS(sum) OF(dpwssd_epi32)(sum, x, y)
#define BYTES(sum) OF(dpbusd_epi32)(sum, x, y)
#else
#define WORDS(sum) OF(add_epi32)(sum, OF(madd_epi16)(x, y))
#define BYTES(sum) OF(add_epi32)(sum, OF(madd_epi16)(OF(maddubs_epi16)(x, y), ones))
#endif

/* Eight sums side by side, so that none waits for itself. They are not an array: that would be kept in memory. The
   empty assembly tells the compiler that x and y change, or it would multiply once for all rounds. */
#define STEP(of, sum) sum = of(sum); __asm__ volatile("" : "+v"(x), "+v"(y), "+v"(sum))
#define LOOP(name, of, bits)                                                                                \
    long long name(long rounds) {                                                                           \
        Vector x = OF(set1_epi8)(1), y = x, ones = OF(set1_epi16)(1);                                       \
        Vector a = x, b = x, c = x, d = x, e = x, f = x, g = x, h = x;                                      \
        (void)ones;                                                                                         \
        for (long round = 0; round < rounds; round++) {                                                     \
            STEP(of, a); STEP(of, b); STEP(of, c); STEP(of, d);                                             \
            STEP(of, e); STEP(of, f); STEP(of, g); STEP(of, h);                                             \
        }                                                                                                   \
        return (long long)rounds * 8 * (long long)sizeof(Vector) * 8 / bits;                                \
    }

LOOP(multiply_words, WORDS, 16)
LOOP(multiply_bytes, BYTES, 8)
