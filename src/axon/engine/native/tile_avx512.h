// 16 float lanes and the int8 products on AVX-512 with VNNI. Same results, bit by bit, as tile_scalar.h.
#pragma once

#include <immintrin.h>

namespace axon {
namespace {

constexpr int kTileRows = 8;  // enough independent sums to hide the latency of a product
constexpr int kFloatRows = 12;  // of a product of floats

struct Lanes {
    __m512 v;
};

AXON_INLINE Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
AXON_INLINE Lanes splat(float x) { return {_mm512_set1_ps(x)}; }
AXON_INLINE Lanes from_ints(const int32_t* p) { return {_mm512_cvtepi32_ps(_mm512_loadu_si512(p))}; }
AXON_INLINE Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
AXON_INLINE Lanes operator-(Lanes a, Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
AXON_INLINE Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
AXON_INLINE Lanes operator/(Lanes a, Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
AXON_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
AXON_INLINE Lanes max(Lanes a, Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
AXON_INLINE Lanes min(Lanes a, Lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
AXON_INLINE Lanes abs(Lanes a) { return {_mm512_abs_ps(a.v)}; }

// a * 2^n for whole n, by adding to the exponent.
AXON_INLINE Lanes times_power_of_two(Lanes a, Lanes n) {
    return {_mm512_castsi512_ps(
        _mm512_add_epi32(_mm512_castps_si512(a.v), _mm512_slli_epi32(_mm512_cvtps_epi32(n.v), 23)))};
}

// The first `count` lanes, `fill` in the others.
AXON_INLINE Lanes first_or(Lanes a, int count, float fill) {
    return {_mm512_mask_mov_ps(_mm512_set1_ps(fill), static_cast<__mmask16>((1u << count) - 1), a.v)};
}

// Floats of which only the upper halves are kept.
AXON_INLINE Lanes load_halves(const uint16_t* p) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
}

AXON_INLINE void store(float* p, Lanes a) { _mm512_storeu_ps(p, a.v); }

// Rounds to nearest, ties to even.
AXON_INLINE void store_int8(int8_t* p, Lanes a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(a.v)));
}

// Always halves: lane i + lane i + 8, then + 4, + 2, + 1.
AXON_INLINE float sum(Lanes a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

AXON_INLINE float largest(Lanes a) { return _mm512_reduce_max_ps(a.v); }

AXON_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

// sum[i] += 4 unsigned with 4 signed bytes. In assembly, because GCC 12 spills the sums around the intrinsic.
AXON_INLINE void add_products(__m512i& sum, __m512i unsigned_bytes, __m512i signed_bytes) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "v"(signed_bytes));
}

// The same with four signed bytes for all 16, which the product takes from memory itself.
AXON_INLINE void add_products(__m512i& sum, __m512i unsigned_bytes, const int8_t* four) {
    asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(unsigned_bytes), "m"(*reinterpret_cast<const int8_t(*)[4]>(four)));
}

AXON_INLINE __m512i repeat_four(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
}

// The product takes one side unsigned, so 128 is added to the weights. A sum begins with what takes that away again:
// -128 x the sum of its row's inputs, exactly, in whole numbers.
inline int32_t start_of(const int8_t* inputs, int count) {
    __m128i total = _mm_setzero_si128();
    for (int i = 0; i < count; i += 16)
        total = _mm_dpbusd_epi32(total, _mm_set1_epi8(1), _mm_loadu_si128(reinterpret_cast<const __m128i*>(inputs + i)));
    total = _mm_add_epi32(total, _mm_shuffle_epi32(total, 0x4E));
    return -128 * _mm_cvtsi128_si32(_mm_add_epi32(total, _mm_shuffle_epi32(total, 0xB1)));
}

// The sums of M rows against a panel's 16 outputs.
template <int M>
struct Sums {
    __m512i v[M];

    AXON_INLINE Sums(const int32_t* starts, int start_stride) {
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) v[m] = _mm512_set1_epi32(starts[static_cast<size_t>(m) * start_stride]);
    }

    AXON_INLINE void add_sixteen(const int8_t* rows, int stride, const int8_t* panel) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            const __m512i w = _mm512_xor_si512(_mm512_loadu_si512(panel + 64 * i), _mm512_set1_epi8(-128));
#pragma GCC unroll 8
            for (int m = 0; m < M; ++m) add_products(v[m], w, rows + static_cast<size_t>(m) * stride + 4 * i);
        }
    }
};

// See tile_neon.h for what these three compute.
template <int M>
void product(const QuantisedRows& rows, const int8_t* panel, const uint16_t* panel_scales, int num_groups, float* out,
             int out_stride, const int8_t* ahead, int ahead_lines) {
    __m512 totals[M];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) totals[m] = _mm512_setzero_ps();
    for (int group = 0; group < num_groups; ++group) {
        Sums<M> sums(rows.starts + group, rows.scale_stride);
        const int8_t* at = rows.values + group * kGroup;
        for (int k = 0; k < kGroup; k += 16) {
            for (int line = 0; line < ahead_lines; ++line, ahead += 64) prefetch(ahead);
            sums.add_sixteen(at + k, rows.stride, panel + 16 * (group * kGroup + k));
        }
        const __m512 weight_scales = load_halves(panel_scales + 16 * group).v;
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
            const __m512 scale = _mm512_set1_ps(rows.scales[static_cast<size_t>(m) * rows.scale_stride + group]);
            const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(sums.v[m]), weight_scales);
            totals[m] = _mm512_fmadd_ps(scaled, scale, totals[m]);
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) _mm512_storeu_ps(out + static_cast<size_t>(m) * out_stride, totals[m]);
}

template <int M>
void dot(const int8_t* rows, int stride, const int32_t* starts, const int8_t* panel, int num_inputs, int32_t* out) {
    Sums<M> sums(starts, 1);
    for (int k = 0; k < num_inputs; k += 16) sums.add_sixteen(rows + k, stride, panel + 16 * k);
    for (int m = 0; m < M; ++m) _mm512_storeu_si512(out + 16 * m, sums.v[m]);
}

// Softmax weights are never negative: they are the unsigned side, and sums begin at zero.
template <int M>
void weigh(const int8_t* weights, int stride, const float* scales, int scale_stride, const uint8_t* const* blocks,
           size_t offset, int num_blocks, float* out, int out_stride) {
    __m512 totals[M];
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) totals[m] = _mm512_setzero_ps();
    for (int block = 0; block < num_blocks; ++block) {
        const uint8_t* values = blocks[block] + offset;
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
            __m512i sum = _mm512_setzero_si512();
            const int8_t* row = weights + static_cast<size_t>(m) * stride + 16 * block;
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i)
                add_products(sum, repeat_four(row + 4 * i), _mm512_loadu_si512(values + 64 * i));
            const __m512 scale = _mm512_set1_ps(scales[static_cast<size_t>(m) * scale_stride + block]);
            totals[m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, totals[m]);
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m) _mm512_storeu_ps(out + static_cast<size_t>(m) * out_stride, totals[m]);
}

}  // namespace
}  // namespace axon

#include "float_product.h"
