// Passes over the scores of a row: maxima, weights and sums of blocks. Knows no request and no draw. Compiled once for
// each instruction set (AXON_TILE names the header, AXON_PASSES the table), with the same results to the bit: a block's
// sum has one fixed shape, and the exponential is our own. Only the table has linkage; see step.cpp.

#include "model.h"

#include "sampler.h"

#include AXON_TILE

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

namespace axon {
namespace {

constexpr float kLowest = -__builtin_inff();
constexpr float kNothing = -53.0f;  // a weight of 2^-53 cannot be told from none by a number of 53 bits

// The one operation that the tiles lack. n + kRounder has n + 127 in its lowest bits: shifted into the place of the
// exponent they are 2^n, and 0 for n = -127.
constexpr float kRounder = 12582912.0f + 127.0f;

[[maybe_unused]] AXON_INLINE float to_power(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, 4);
    bits <<= 23;
    __builtin_memcpy(&x, &bits, 4);
    return x;
}
#if defined(__aarch64__)
[[maybe_unused]] AXON_INLINE float32x4_t to_power(float32x4_t x) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vreinterpretq_s32_f32(x), 23));
}
#endif
#if defined(__AVX2__)
[[maybe_unused]] AXON_INLINE __m256 to_power(__m256 x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 23));
}
#endif
#if defined(__AVX512F__)
[[maybe_unused]] AXON_INLINE __m512 to_power(__m512 x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(x), 23));
}
#endif

template <class Part, int N>
AXON_INLINE void all_to_power(Part (&parts)[N]) {
    for (Part& part : parts) part = to_power(part);
}

template <class Part>
AXON_INLINE void all_to_power(Part& whole) {
    whole = to_power(whole);
}

// 2^x for x up to 0, to about one unit in the last place, exactly 1 at 0, and 0 below -127: 2^n times a polynomial on
// [-1/2, 1/2].
AXON_INLINE Lanes power_of_two(Lanes x) {
    x = max(x, splat(-127.0f));
    Lanes n = x + splat(kRounder);  // rounds to a whole number
    const Lanes r = x - (n - splat(kRounder)), square = r * r;
    Lanes high = fma(r, splat(1.3398875e-3f), splat(9.6184369e-3f));
    high = fma(square, splat(1.5353362e-4f), high);
    Lanes middle = fma(r, splat(5.5503324e-2f), splat(2.4022648e-1f));
    middle = fma(square, high, middle);
    const Lanes low = fma(r, splat(6.9314718e-1f), splat(1.0f));
    all_to_power(n.v);
    return fma(square, middle, low) * n;
}

AXON_INLINE Lanes weight(const float* scores, Lanes peak, Lanes inverse) {
    return power_of_two((load(scores) - peak) * inverse);
}

// The scores of a block, padded where the row ends within it.
inline const float* block_of(const float* scores, int count, int first, float* padded) {
    if (count - first >= kBlock) return scores + first;
    for (int i = 0; i < kBlock; ++i) padded[i] = first + i < count ? scores[first + i] : kLowest;
    return padded;
}

void tops(const float* scores, int count, float* tops) {
    alignas(64) float padded[kBlock];
    for (int first = 0; first < count; first += kBlock) {
        const float* block = block_of(scores, count, first, padded);
        tops[first / kBlock] = largest(max(max(load(block), load(block + kLanes)),
                                           max(load(block + 2 * kLanes), load(block + 3 * kLanes))));
    }
}

AXON_INLINE void weigh_block(const float* block, Lanes peak, Lanes inverse, float* weights) {
    for (int i = 0; i < kBlock; i += kLanes) store(weights + i, weight(block + i, peak, inverse));
}

AXON_INLINE float sum_block(const float* weights) {
    return sum((load(weights) + load(weights + kLanes)) + (load(weights + 2 * kLanes) + load(weights + 3 * kLanes)));
}

inline void cut_block(const float* block, int first, Cut cut, float* weights) {
    for (int i = 0; i < kBlock; ++i) {
        const bool stays = (block[i] > cut.score) | ((block[i] == cut.score) & (first + i <= cut.id));
        weights[i] = stays ? weights[i] : 0.0f;
    }
}

// Several blocks are weighed before they are summed: a sum that waits for its weights would hold up the next block.
void sums(const float* scores, int count, const float* tops, Softmax softmax, Cut cut, float* sums) {
    constexpr int kAtOnce = 16;
    alignas(64) float padded[kBlock], weights[kAtOnce * kBlock];
    const Lanes peak = splat(softmax.peak), inverse = splat(softmax.inverse);
    const int num_blocks = (count + kBlock - 1) / kBlock;
    int some[kAtOnce];
    for (int block = 0; block < num_blocks;) {
        int num = 0;
        for (; block < num_blocks && num < kAtOnce; ++block) {
            sums[block] = 0;
            if (tops[block] < cut.score || !((tops[block] - softmax.peak) * softmax.inverse > kNothing)) continue;
            const float* from = block_of(scores, count, block * kBlock, padded);
            weigh_block(from, peak, inverse, weights + num * kBlock);
            if (cut.score > kLowest) cut_block(from, block * kBlock, cut, weights + num * kBlock);
            some[num++] = block;
        }
        for (int i = 0; i < num; ++i) sums[some[i]] = sum_block(weights + i * kBlock);
    }
}

void weigh(const float* scores, int count, Softmax softmax, float* weights) {
    alignas(64) float padded[kBlock], last[kBlock];
    const Lanes peak = splat(softmax.peak), inverse = splat(softmax.inverse);
    for (int first = 0; first < count; first += kBlock) {
        const float* block = block_of(scores, count, first, padded);
        weigh_block(block, peak, inverse, block == padded ? last : weights + first);
        if (block == padded) __builtin_memcpy(weights + first, last, sizeof(float) * (count - first));
    }
}

double sum_from(const float* scores, const float* weights, int count, float lowest) {
    constexpr int kStretch = 64 * kLanes;  // added in float; stretches are added in double
    double total = 0;
    for (int start = 0; start < count; start += kStretch) {
        float lanes[kLanes] = {};
        const int end = start + kStretch < count ? start + kStretch : count, whole = end - (end - start) % kLanes;
        for (int first = start; first < whole; first += kLanes)
            for (int i = 0; i < kLanes; ++i) {
                const float weight = weights[first + i];
                lanes[i] += scores[first + i] >= lowest ? weight : 0.0f;
            }
        for (int i = whole; i < end; ++i) lanes[i - whole] += scores[i] >= lowest ? weights[i] : 0.0f;
        for (int i = 0; i < kLanes; ++i) total += lanes[i];
    }
    return total;
}

}  // namespace

extern const Passes AXON_PASSES;
const Passes AXON_PASSES = {tops, sums, weigh, sum_from};

}  // namespace axon
