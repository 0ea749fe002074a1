// 16 float lanes and the int8 products in plain C++: runs anywhere, and is what the other tiles are checked against.
#pragma once

#include <cmath>
#include <cstring>

namespace axon {
namespace {

constexpr int kTileRows = 4;
constexpr int kFloatRows = 4;  // of a product of floats

struct Lanes {
    float v[16];
};

#define AXON_EACH(expression)                                 \
    Lanes result;                                             \
    for (int i = 0; i < 16; ++i) result.v[i] = (expression);  \
    return result

AXON_INLINE Lanes load(const float* p) { AXON_EACH(p[i]); }
AXON_INLINE Lanes splat(float x) { AXON_EACH(x); }
AXON_INLINE Lanes from_ints(const int32_t* p) { AXON_EACH(static_cast<float>(p[i])); }
AXON_INLINE Lanes operator+(Lanes a, Lanes b) { AXON_EACH(a.v[i] + b.v[i]); }
AXON_INLINE Lanes operator-(Lanes a, Lanes b) { AXON_EACH(a.v[i] - b.v[i]); }
AXON_INLINE Lanes operator*(Lanes a, Lanes b) { AXON_EACH(a.v[i] * b.v[i]); }
AXON_INLINE Lanes operator/(Lanes a, Lanes b) { AXON_EACH(a.v[i] / b.v[i]); }
AXON_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) { AXON_EACH(__builtin_fmaf(a.v[i], b.v[i], c.v[i])); }
AXON_INLINE Lanes max(Lanes a, Lanes b) { AXON_EACH(a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
AXON_INLINE Lanes min(Lanes a, Lanes b) { AXON_EACH(a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
AXON_INLINE Lanes abs(Lanes a) { AXON_EACH(__builtin_fabsf(a.v[i])); }
AXON_INLINE Lanes first_or(Lanes a, int count, float fill) { AXON_EACH(i < count ? a.v[i] : fill); }

inline float add_to_exponent(float x, int n) {
    int32_t bits;
    std::memcpy(&bits, &x, 4);
    bits += n * (1 << 23);
    std::memcpy(&x, &bits, 4);
    return x;
}

// a * 2^n for whole n.
AXON_INLINE Lanes times_power_of_two(Lanes a, Lanes n) { AXON_EACH(add_to_exponent(a.v[i], static_cast<int>(n.v[i]))); }
#undef AXON_EACH

// Floats of which only the upper halves are kept.
AXON_INLINE Lanes load_halves(const uint16_t* p) {
    Lanes result;
    for (int i = 0; i < 16; ++i) {
        const uint32_t bits = static_cast<uint32_t>(p[i]) << 16;
        std::memcpy(&result.v[i], &bits, 4);
    }
    return result;
}

AXON_INLINE void store(float* p, Lanes a) { std::memcpy(p, a.v, sizeof a.v); }

// Rounds to nearest, ties to even.
AXON_INLINE void store_int8(int8_t* p, Lanes a) {
    for (int i = 0; i < 16; ++i) {
        const float rounded = __builtin_nearbyintf(a.v[i]);
        p[i] = static_cast<int8_t>(rounded < -128 ? -128 : rounded > 127 ? 127 : rounded);
    }
}

// Always halves: lane i + lane i + 8, then + 4, + 2, + 1.
AXON_INLINE float sum(Lanes a) {
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) a.v[i] = a.v[i] + a.v[i + half];
    return a.v[0];
}

AXON_INLINE float largest(Lanes a) {
    float result = a.v[0];
    for (int i = 1; i < 16; ++i) result = a.v[i] > result ? a.v[i] : result;
    return result;
}

AXON_INLINE void prefetch(const void*) {}

// The product of 16 inputs of one row with 256 bytes of a panel, added to 16 sums.
inline void add_sixteen(const int8_t* row, const int8_t* panel, int32_t* sums) {
    for (int k = 0; k < 16; ++k)
        for (int n = 0; n < 16; ++n) sums[n] += row[k] * panel[k / 4 * 64 + 4 * n + k % 4];
}

// Products here take both sides signed: a sum begins at zero.
inline int32_t start_of(const int8_t*, int) { return 0; }

template <int M>
void product(const QuantisedRows& rows, const int8_t* panel, const uint16_t* panel_scales, int num_groups, float* out,
             int out_stride, const int8_t*, int) {
    for (int m = 0; m < M; ++m) {
        const int8_t* row = rows.values + static_cast<size_t>(m) * rows.stride;
        Lanes total = splat(0);
        for (int group = 0; group < num_groups; ++group) {
            int32_t sums[16] = {};
            for (int k = group * kGroup; k < (group + 1) * kGroup; k += 16) add_sixteen(row + k, panel + 16 * k, sums);
            const Lanes scaled = from_ints(sums) * load_halves(panel_scales + 16 * group);
            total = fma(scaled, splat(rows.scales[static_cast<size_t>(m) * rows.scale_stride + group]), total);
        }
        store(out + static_cast<size_t>(m) * out_stride, total);
    }
}

template <int M>
void dot(const int8_t* rows, int stride, const int32_t*, const int8_t* panel, int num_inputs, int32_t* out) {
    std::memset(out, 0, sizeof(int32_t) * 16 * M);
    for (int m = 0; m < M; ++m)
        for (int k = 0; k < num_inputs; k += 16)
            add_sixteen(rows + static_cast<size_t>(m) * stride + k, panel + 16 * k, out + 16 * m);
}

template <int M>
void weigh(const int8_t* weights, int stride, const float* scales, int scale_stride, const uint8_t* const* blocks,
           size_t offset, int num_blocks, float* out, int out_stride) {
    for (int m = 0; m < M; ++m) {
        Lanes total = splat(0);
        for (int block = 0; block < num_blocks; ++block) {
            int32_t sums[16] = {};
            add_sixteen(weights + static_cast<size_t>(m) * stride + 16 * block,
                        reinterpret_cast<const int8_t*>(blocks[block] + offset), sums);
            total = fma(from_ints(sums), splat(scales[static_cast<size_t>(m) * scale_stride + block]), total);
        }
        store(out + static_cast<size_t>(m) * out_stride, total);
    }
}

}  // namespace
}  // namespace axon

#include "float_product.h"
