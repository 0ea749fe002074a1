// Whole-number products on Arm by SMMLA: eight inputs of two rows with two outputs, so twice as many as SDOT has.
#pragma once

#include "lanes_neon.h"

namespace axon {
namespace {

constexpr int kTileRows = 8;  // the panel is rearranged for every tile, so a tile has many rows
constexpr int kFloatRows = 4;  // of a product of floats: 16 sums, 4 rows, 4 weights

// A quarter of a panel at a time leaves room for the sums and totals of all rows.
template <int M>
constexpr int kColumns = M <= 2 ? 4 : M <= 4 ? 2 : 1;
template <int M>
constexpr int kDotColumns = M <= 4 ? 4 : 2;  // there are no totals in a dot

// The sums of M rows against 4 x J of a panel's 16 outputs; they begin at `start`. Rows go in pairs; the last of an odd
// number is its own partner.
template <int M, int J>
struct Sums {
    static constexpr int kPairs = (M + 1) / 2;
    int32x4_t v[kPairs][J][2];  // {row, row; next row, next row} x {output, next output}, outputs 0 and 1, then 2 and 3

    AXON_INLINE explicit Sums(const int32_t* start) {
#pragma GCC unroll 4
        for (int pair = 0; pair < kPairs; ++pair)
#pragma GCC unroll 4
            for (int j = 0; j < J; ++j) v[pair][j][0] = v[pair][j][1] = vld1q_s32(start);
    }

    // Row m's sums of the outputs from 4 x j on.
    AXON_INLINE int32x4_t at(int m, int j) const {
        const int64x2_t first = vreinterpretq_s64_s32(v[m / 2][j][0]), second = vreinterpretq_s64_s32(v[m / 2][j][1]);
        return vreinterpretq_s32_s64(m % 2 ? vzip2q_s64(first, second) : vzip1q_s64(first, second));
    }

    // 8 inputs of every row against 2 lines of a panel. A line has 4 inputs of each output: two of them, zipped, have 8.
    AXON_INLINE void add_eight(const int8x16_t (&rows)[kPairs], const int8_t* panel) {
#pragma GCC unroll 4
        for (int j = 0; j < J; ++j) {
            const int32x4_t early = vreinterpretq_s32_s8(vld1q_s8(panel + 16 * j));
            const int32x4_t late = vreinterpretq_s32_s8(vld1q_s8(panel + 64 + 16 * j));
            const int8x16_t w[2] = {vreinterpretq_s8_s32(vzip1q_s32(early, late)),
                                    vreinterpretq_s8_s32(vzip2q_s32(early, late))};
#pragma GCC unroll 4
            for (int pair = 0; pair < kPairs; ++pair)
#pragma GCC unroll 2
                for (int half = 0; half < 2; ++half)
                    v[pair][j][half] = vmmlaq_s32(v[pair][j][half], rows[pair], w[half]);
        }
    }

    // 16 inputs of every row against 4 lines of a panel.
    AXON_INLINE void add_sixteen(const int8_t* rows, int stride, const int8_t* panel) {
        int8x16_t first[kPairs], second[kPairs];
#pragma GCC unroll 4
        for (int pair = 0; pair < kPairs; ++pair) {
            const int partner = 2 * pair + 1 < M ? 2 * pair + 1 : 2 * pair;
            const int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(rows + static_cast<size_t>(2 * pair) * stride));
            const int64x2_t b = vreinterpretq_s64_s8(vld1q_s8(rows + static_cast<size_t>(partner) * stride));
            first[pair] = vreinterpretq_s8_s64(vzip1q_s64(a, b));
            second[pair] = vreinterpretq_s8_s64(vzip2q_s64(a, b));
        }
        add_eight(first, panel);
        add_eight(second, panel + 128);
    }
};

}  // namespace
}  // namespace axon
