// The int8 products on Arm, by SMMLA where this is compiled for it, by SDOT elsewhere. Same results, bit by bit, as
// tile_scalar.h.
#pragma once

#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "sums_smmla.h"
#else
#include "sums_sdot.h"
#endif

namespace axon {
namespace {

// The bits of 1.5 * 2^23. A whole number added to these bits, if below 2^22, is a float that is larger than 1.5 * 2^23
// by just that number: taking it away again converts exactly, on both pipes, where the conversion has only one.
alignas(16) constexpr int32_t kMagicBits[4] = {0x4B400000, 0x4B400000, 0x4B400000, 0x4B400000};
alignas(16) constexpr int32_t kZeros[4] = {};
constexpr float kMagic = 12582912.0f;
static_assert(kGroup * 127 * 127 < (1 << 22), "a group's product must fit");

// Products here take both sides signed: a sum begins at zero.
inline int32_t start_of(const int8_t*, int) { return 0; }

// Float totals that sums are added to, each times a scale of its row.
template <int M, int J>
struct Totals {
    float32x4_t v[M][J];

    AXON_INLINE Totals() {
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
            for (int j = 0; j < J; ++j) v[m][j] = vdupq_n_f32(0);
    }

    // The sums began at kMagicBits.
    AXON_INLINE void add(const Sums<M, J>& sums, const float* scales, int scale_stride) {
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
            const float scale = scales[static_cast<size_t>(m) * scale_stride];
#pragma GCC unroll 4
            for (int j = 0; j < J; ++j) {
                const float32x4_t sum = vsubq_f32(vreinterpretq_f32_s32(sums.at(m, j)), vdupq_n_f32(kMagic));
                v[m][j] = vfmaq_n_f32(v[m][j], sum, scale);
            }
        }
    }

    // The same, with a scale of each output besides.
    AXON_INLINE void add(const Sums<M, J>& sums, const float* scales, int scale_stride, const uint16_t* output_scales) {
        float32x4_t of_output[J];
#pragma GCC unroll 4
        for (int j = 0; j < J; ++j) of_output[j] = load_four_halves(output_scales + 4 * j);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
            const float scale = scales[static_cast<size_t>(m) * scale_stride];
#pragma GCC unroll 4
            for (int j = 0; j < J; ++j) {
                const float32x4_t sum = vsubq_f32(vreinterpretq_f32_s32(sums.at(m, j)), vdupq_n_f32(kMagic));
                v[m][j] = vfmaq_n_f32(v[m][j], vmulq_f32(sum, of_output[j]), scale);
            }
        }
    }

    AXON_INLINE void write(float* out, int out_stride) const {
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
            for (int j = 0; j < J; ++j) vst1q_f32(out + static_cast<size_t>(m) * out_stride + 4 * j, v[m][j]);
    }
};

// out[m][16] = sum over groups of (row's scale) x ((output's scale) x (whole-number product of the group)).
// Meanwhile `ahead_lines` lines of memory from `ahead` on are prefetched for every 16 inputs.
template <int M>
void product(const QuantisedRows& rows, const int8_t* panel, const uint16_t* panel_scales, int num_groups, float* out,
             int out_stride, const int8_t* ahead, int ahead_lines) {
    constexpr int J = kColumns<M>;
    for (int column = 0; column < 4; column += J) {
        const int lines = ahead_lines * (column + J) / 4 - ahead_lines * column / 4;  // this column's part of them
        const int8_t* at = panel + 16 * column;
        Totals<M, J> totals;
        for (int group = 0; group < num_groups; ++group) {
            Sums<M, J> sums(kMagicBits);
#pragma GCC unroll 4
            for (int k = 0; k < kGroup; k += 16) {
                for (int line = 0; line < lines; ++line, ahead += 64) prefetch(ahead);
                sums.add_sixteen(rows.values + group * kGroup + k, rows.stride, at + 16 * k);
            }
            at += 16 * kGroup;
            totals.add(sums, rows.scales + group, rows.scale_stride, panel_scales + 16 * group + 4 * column);
        }
        totals.write(out + 4 * column, out_stride);
    }
}

// out[m][16]: whole-number products of M rows with one panel.
template <int M>
void dot(const int8_t* rows, int stride, const int32_t*, const int8_t* panel, int num_inputs, int32_t* out) {
    constexpr int J = kDotColumns<M>;
    for (int column = 0; column < 4; column += J) {
        Sums<M, J> sums(kZeros);
        for (int k = 0; k < num_inputs; k += 16) sums.add_sixteen(rows + k, stride, panel + 16 * (k + column));
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
            for (int j = 0; j < J; ++j) vst1q_s32(out + 16 * m + 4 * (column + j), sums.at(m, j));
    }
}

// out[m][16] = sum over blocks of (weight scale of the block) x (weights of its 16 tokens with 16 dimensions).
template <int M>
void weigh(const int8_t* weights, int stride, const float* scales, int scale_stride, const uint8_t* const* blocks,
           size_t offset, int num_blocks, float* out, int out_stride) {
    constexpr int J = kColumns<M>;
    for (int column = 0; column < 4; column += J) {
        Totals<M, J> totals;
        for (int block = 0; block < num_blocks; ++block) {
            Sums<M, J> sums(kMagicBits);
            const uint8_t* values = blocks[block] + offset + 16 * column;
            sums.add_sixteen(weights + 16 * block, stride, reinterpret_cast<const int8_t*>(values));
            totals.add(sums, scales + block, scale_stride);
        }
        totals.write(out + 4 * column, out_stride);
    }
}

// out[m][16] = rows[m] x panel, [input][16]: one of four inputs of every row at a time. See float_tiles.h.
template <int Place, int M>
AXON_INLINE void add_floats(float32x4_t (&totals)[M][4], const float32x4_t (&inputs)[M], const float* line) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
        const float32x4_t weights = vld1q_f32(line + 4 * j);
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m)  // volatile: in this order no sum waits for itself
            asm volatile("fmla %0.4s, %1.4s, %2.s[%3]"
                         : "+w"(totals[m][j])
                         : "w"(weights), "w"(inputs[m]), "i"(Place));
    }
}

template <int M>
void float_product(const float* rows, size_t stride, const float* panel, int num_inputs, float* out, int out_stride) {
    float32x4_t totals[M][4];
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) totals[m][j] = vdupq_n_f32(0);
    for (int k = 0; k < num_inputs; k += 4, panel += 64) {
        float32x4_t inputs[M];
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) inputs[m] = vld1q_f32(rows + m * stride + k);
        add_floats<0>(totals, inputs, panel);
        add_floats<1>(totals, inputs, panel + 16);
        add_floats<2>(totals, inputs, panel + 32);
        add_floats<3>(totals, inputs, panel + 48);
    }
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) vst1q_f32(out + static_cast<size_t>(m) * out_stride + 4 * j, totals[m][j]);
}

}  // namespace
}  // namespace axon
