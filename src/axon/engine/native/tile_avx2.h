// 16 float lanes and the int8 products on AVX2 with FMA. Same results, bit by bit, as tile_scalar.h.
#pragma once

#include <immintrin.h>

namespace axon {
namespace {

constexpr int kTileRows = 4;  // 8 accumulators leave half of the 16 registers for panels and products
constexpr int kFloatRows = 6;  // of a product of floats

struct Lanes {
    __m256 v[2];
};

#define AXON_EACH(expression)                                \
    Lanes result;                                            \
    for (int i = 0; i < 2; ++i) result.v[i] = (expression);  \
    return result

AXON_INLINE __m256i load_ints(const int32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

AXON_INLINE Lanes load(const float* p) { AXON_EACH(_mm256_loadu_ps(p + 8 * i)); }
AXON_INLINE Lanes splat(float x) { AXON_EACH(_mm256_set1_ps(x)); }
AXON_INLINE Lanes from_ints(const int32_t* p) { AXON_EACH(_mm256_cvtepi32_ps(load_ints(p + 8 * i))); }
AXON_INLINE Lanes operator+(Lanes a, Lanes b) { AXON_EACH(_mm256_add_ps(a.v[i], b.v[i])); }
AXON_INLINE Lanes operator-(Lanes a, Lanes b) { AXON_EACH(_mm256_sub_ps(a.v[i], b.v[i])); }
AXON_INLINE Lanes operator*(Lanes a, Lanes b) { AXON_EACH(_mm256_mul_ps(a.v[i], b.v[i])); }
AXON_INLINE Lanes operator/(Lanes a, Lanes b) { AXON_EACH(_mm256_div_ps(a.v[i], b.v[i])); }
AXON_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) { AXON_EACH(_mm256_fmadd_ps(a.v[i], b.v[i], c.v[i])); }
AXON_INLINE Lanes max(Lanes a, Lanes b) { AXON_EACH(_mm256_max_ps(a.v[i], b.v[i])); }
AXON_INLINE Lanes min(Lanes a, Lanes b) { AXON_EACH(_mm256_min_ps(a.v[i], b.v[i])); }
AXON_INLINE Lanes abs(Lanes a) { AXON_EACH(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v[i])); }

// a * 2^n for whole n, by adding to the exponent.
AXON_INLINE Lanes times_power_of_two(Lanes a, Lanes n) {
    AXON_EACH(_mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(a.v[i]), _mm256_slli_epi32(_mm256_cvtps_epi32(n.v[i]), 23))));
}

// The first `count` lanes, `fill` in the others.
AXON_INLINE Lanes first_or(Lanes a, int count, float fill) {
    static const int32_t kIndex[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    AXON_EACH(_mm256_blendv_ps(
        _mm256_set1_ps(fill), a.v[i],
        _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), load_ints(kIndex + 8 * i)))));
}
#undef AXON_EACH

// Floats of which only the upper halves are kept.
AXON_INLINE Lanes load_halves(const uint16_t* p) {
    Lanes result;
    for (int i = 0; i < 2; ++i) {
        const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8 * i));
        result.v[i] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
    }
    return result;
}

AXON_INLINE void store(float* p, Lanes a) {
    for (int i = 0; i < 2; ++i) _mm256_storeu_ps(p + 8 * i, a.v[i]);
}

// Rounds to nearest, ties to even.
AXON_INLINE void store_int8(int8_t* p, Lanes a) {
    const __m256i both = _mm256_packs_epi32(_mm256_cvtps_epi32(a.v[0]), _mm256_cvtps_epi32(a.v[1]));
    const __m256i words = _mm256_permute4x64_epi64(both, 0xD8);  // packing works in halves: put them in order
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}

// Always halves: lane i + lane i + 8, then + 4, + 2, + 1.
AXON_INLINE float sum(Lanes a) {
    const __m256 eight = _mm256_add_ps(a.v[0], a.v[1]);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

AXON_INLINE float largest(Lanes a) {
    const __m256 eight = _mm256_max_ps(a.v[0], a.v[1]);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

AXON_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }

// Products here take both sides signed: a sum begins at zero.
inline int32_t start_of(const int8_t*, int) { return 0; }

// The sums of M rows against a panel's 16 outputs.
template <int M>
struct Sums {
    __m256i v[M][2];

    AXON_INLINE Sums() {
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) v[m][0] = v[m][1] = _mm256_setzero_si256();
    }

    // 4 inputs of every row against one line. The product of bytes takes one side unsigned and adds pairs to 16 bits: with
    // the sign moved to the weights it takes 127 x 127 x 2, which fits. No number is -128.
    AXON_INLINE void add_four(const int8_t* rows, int stride, const int8_t* line) {
        const __m256i ones = _mm256_set1_epi16(1);
        const __m256i* at = reinterpret_cast<const __m256i*>(line);
        const __m256i w[2] = {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) {
            int32_t four;
            __builtin_memcpy(&four, rows + static_cast<size_t>(m) * stride, 4);
            const __m256i a = _mm256_set1_epi32(four), magnitude = _mm256_abs_epi8(a);
#pragma GCC unroll 2
            for (int j = 0; j < 2; ++j) {
                const __m256i pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(w[j], a));
                v[m][j] = _mm256_add_epi32(v[m][j], _mm256_madd_epi16(pairs, ones));
            }
        }
    }

    AXON_INLINE void add_sixteen(const int8_t* rows, int stride, const int8_t* panel) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) add_four(rows + 4 * i, stride, panel + 64 * i);
    }

    // out[m] (+)= scale of the row x (scale of the output x) sums.
    AXON_INLINE void add_to(float* out, int out_stride, const float* scales, int scale_stride, bool first,
                            const Lanes* output_scales = nullptr) const {
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) {
            const __m256 scale = _mm256_set1_ps(scales[static_cast<size_t>(m) * scale_stride]);
#pragma GCC unroll 2
            for (int j = 0; j < 2; ++j) {
                float* to = out + static_cast<size_t>(m) * out_stride + 8 * j;
                const __m256 before = first ? _mm256_setzero_ps() : _mm256_loadu_ps(to);
                __m256 sum = _mm256_cvtepi32_ps(v[m][j]);
                if (output_scales) sum = _mm256_mul_ps(sum, output_scales->v[j]);
                _mm256_storeu_ps(to, _mm256_fmadd_ps(sum, scale, before));
            }
        }
    }
};

// See tile_neon.h for what these three compute.
template <int M>
void product(const QuantisedRows& rows, const int8_t* panel, const uint16_t* panel_scales, int num_groups, float* out,
             int out_stride, const int8_t* ahead, int ahead_lines) {
    for (int group = 0; group < num_groups; ++group) {
        Sums<M> sums;
        for (int k = group * kGroup; k < (group + 1) * kGroup; k += 16) {
            for (int line = 0; line < ahead_lines; ++line, ahead += 64) prefetch(ahead);
            sums.add_sixteen(rows.values + k, rows.stride, panel + 16 * k);
        }
        const Lanes output_scales = load_halves(panel_scales + 16 * group);
        sums.add_to(out, out_stride, rows.scales + group, rows.scale_stride, group == 0, &output_scales);
    }
}

template <int M>
void dot(const int8_t* rows, int stride, const int32_t*, const int8_t* panel, int num_inputs, int32_t* out) {
    Sums<M> sums;
    for (int k = 0; k < num_inputs; k += 16) sums.add_sixteen(rows + k, stride, panel + 16 * k);
    for (int m = 0; m < M; ++m)
        for (int j = 0; j < 2; ++j) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * m + 8 * j), sums.v[m][j]);
}

template <int M>
void weigh(const int8_t* weights, int stride, const float* scales, int scale_stride, const uint8_t* const* blocks,
           size_t offset, int num_blocks, float* out, int out_stride) {
    for (int block = 0; block < num_blocks; ++block) {
        Sums<M> sums;
        sums.add_sixteen(weights + 16 * block, stride, reinterpret_cast<const int8_t*>(blocks[block] + offset));
        sums.add_to(out, out_stride, scales + block, scale_stride, block == 0);
    }
}

}  // namespace
}  // namespace axon

#include "float_product.h"
