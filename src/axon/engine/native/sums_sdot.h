// Whole-number products on Arm by SDOT: four inputs of one row with four outputs.
#pragma once

#include "lanes_neon.h"

namespace axon {
namespace {

constexpr int kTileRows = 4;  // 16 accumulators, 4 rows, and room to load panels ahead
constexpr int kFloatRows = 4;  // of a product of floats: 16 sums, 4 rows, 4 weights

// Sums and totals of all 16 outputs fill the 32 registers from 3 rows on; half a panel at a time leaves room.
template <int M>
constexpr int kColumns = M <= 2 ? 4 : 2;
template <int M>
constexpr int kDotColumns = 4;  // there are no totals in a dot

// sum[i] += 4 weights of output i with 4 inputs. In assembly, because GCC 12 moves sums between registers around the
// intrinsic, and every move costs a product.
template <int Lane>
AXON_INLINE void add_products(int32x4_t& sum, int8x16_t weights, int8x16_t inputs) {
    asm("sdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(sum) : "w"(weights), "w"(inputs), "i"(Lane));
}

// The sums of M rows against 4 x J of a panel's 16 outputs; they begin at `start`.
template <int M, int J>
struct Sums {
    int32x4_t v[M][J];

    AXON_INLINE explicit Sums(const int32_t* start) {
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
            for (int j = 0; j < J; ++j) v[m][j] = load_start(start);
    }

    // From memory on purpose: loads have pipes of their own, while a move between registers takes the place of a product.
    AXON_INLINE static int32x4_t load_start(const int32_t* start) {
        int32x4_t result;
        asm volatile("ldr %q0, %1" : "=w"(result) : "m"(*reinterpret_cast<const int32_t(*)[4]>(start)));
        return result;
    }

    template <int Lane>
    AXON_INLINE void add_four(const int8x16_t (&a)[M], const int8_t* panel) {
#pragma GCC unroll 4
        for (int j = 0; j < J; ++j) {
            const int8x16_t w = vld1q_s8(panel + Lane * 64 + 16 * j);
#pragma GCC unroll 4
            for (int m = 0; m < M; ++m) add_products<Lane>(v[m][j], w, a[m]);
        }
    }

    // Row m's sums of the outputs from 4 x j on.
    AXON_INLINE int32x4_t at(int m, int j) const { return v[m][j]; }

    // 16 inputs of every row against 4 lines of a panel.
    AXON_INLINE void add_sixteen(const int8_t* rows, int stride, const int8_t* panel) {
        int8x16_t a[M];
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) a[m] = vld1q_s8(rows + static_cast<size_t>(m) * stride);
        add_four<0>(a, panel);
        add_four<1>(a, panel);
        add_four<2>(a, panel);
        add_four<3>(a, panel);
    }
};

}  // namespace
}  // namespace axon
