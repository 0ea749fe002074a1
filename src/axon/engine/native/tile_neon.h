// 16 float lanes and the int8 products, on Arm with SDOT. Same results, bit by bit, as tile_scalar.h.
#pragma once

#include <arm_neon.h>

namespace axon {
namespace {

constexpr int kTileRows = 4;  // 16 accumulators, 4 rows, and room to load panels ahead

struct Lanes {
    float32x4_t v[4];
};

#define AXON_EACH(expression)                                \
    Lanes result;                                            \
    for (int i = 0; i < 4; ++i) result.v[i] = (expression);  \
    return result

AXON_INLINE Lanes load(const float* p) { AXON_EACH(vld1q_f32(p + 4 * i)); }
AXON_INLINE Lanes splat(float x) { AXON_EACH(vdupq_n_f32(x)); }
AXON_INLINE Lanes from_ints(const int32_t* p) { AXON_EACH(vcvtq_f32_s32(vld1q_s32(p + 4 * i))); }
AXON_INLINE Lanes operator+(Lanes a, Lanes b) { AXON_EACH(vaddq_f32(a.v[i], b.v[i])); }
AXON_INLINE Lanes operator-(Lanes a, Lanes b) { AXON_EACH(vsubq_f32(a.v[i], b.v[i])); }
AXON_INLINE Lanes operator*(Lanes a, Lanes b) { AXON_EACH(vmulq_f32(a.v[i], b.v[i])); }
AXON_INLINE Lanes operator/(Lanes a, Lanes b) { AXON_EACH(vdivq_f32(a.v[i], b.v[i])); }
AXON_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) { AXON_EACH(vfmaq_f32(c.v[i], a.v[i], b.v[i])); }
AXON_INLINE Lanes max(Lanes a, Lanes b) { AXON_EACH(vmaxq_f32(a.v[i], b.v[i])); }
AXON_INLINE Lanes min(Lanes a, Lanes b) { AXON_EACH(vminq_f32(a.v[i], b.v[i])); }
AXON_INLINE Lanes abs(Lanes a) { AXON_EACH(vabsq_f32(a.v[i])); }

// a * 2^n for whole n, by adding to the exponent.
AXON_INLINE Lanes times_power_of_two(Lanes a, Lanes n) {
    AXON_EACH(vreinterpretq_f32_s32(
        vaddq_s32(vreinterpretq_s32_f32(a.v[i]), vshlq_n_s32(vcvtq_s32_f32(n.v[i]), 23))));
}

// The first `count` lanes, `fill` in the others.
AXON_INLINE Lanes first_or(Lanes a, int count, float fill) {
    static const int32_t kIndex[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    AXON_EACH(vbslq_f32(vcltq_s32(vld1q_s32(kIndex + 4 * i), vdupq_n_s32(count)), a.v[i], vdupq_n_f32(fill)));
}
#undef AXON_EACH

// Floats of which only the upper halves are kept.
AXON_INLINE float32x4_t load_four_halves(const uint16_t* p) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}

AXON_INLINE Lanes load_halves(const uint16_t* p) {
    Lanes result;
    for (int i = 0; i < 4; ++i) result.v[i] = load_four_halves(p + 4 * i);
    return result;
}

AXON_INLINE void store(float* p, Lanes a) {
    for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, a.v[i]);
}

// Rounds to nearest, ties to even.
AXON_INLINE void store_int8(int8_t* p, Lanes a) {
    const int16x8_t low = vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(a.v[0])), vqmovn_s32(vcvtnq_s32_f32(a.v[1])));
    const int16x8_t high = vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(a.v[2])), vqmovn_s32(vcvtnq_s32_f32(a.v[3])));
    vst1q_s8(p, vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)));
}

// Always halves: lane i + lane i + 8, then + 4, + 2, + 1.
AXON_INLINE float sum(Lanes a) {
    const float32x4_t four = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

AXON_INLINE float largest(Lanes a) {
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.v[0], a.v[1]), vmaxq_f32(a.v[2], a.v[3])));
}

AXON_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }

// The bits of 1.5 * 2^23. A whole number added to these bits, if below 2^22, is a float that is larger than 1.5 * 2^23
// by just that number: taking it away again converts exactly, on both pipes, where the conversion has only one.
alignas(16) constexpr int32_t kMagicBits[4] = {0x4B400000, 0x4B400000, 0x4B400000, 0x4B400000};
alignas(16) constexpr int32_t kZeros[4] = {};
constexpr float kMagic = 12582912.0f;
static_assert(kGroup * 127 * 127 < (1 << 22), "a group's product must fit");


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

// Float totals that sums are added to, each times a scale of its row.
template <int M, int J>
struct Totals {
    float32x4_t v[M][J];

    AXON_INLINE Totals() {
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
            for (int j = 0; j < J; ++j) v[m][j] = vdupq_n_f32(0);
    }

    // The sums began at kMagicBits.
    AXON_INLINE void add(const Sums<M, J>& sums, const float* scales, int scale_stride) {
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) {
            const float scale = scales[static_cast<size_t>(m) * scale_stride];
#pragma GCC unroll 4
            for (int j = 0; j < J; ++j) {
                const float32x4_t sum = vsubq_f32(vreinterpretq_f32_s32(sums.v[m][j]), vdupq_n_f32(kMagic));
                v[m][j] = vfmaq_n_f32(v[m][j], sum, scale);
            }
        }
    }

    // The same, with a scale of each output besides.
    AXON_INLINE void add(const Sums<M, J>& sums, const float* scales, int scale_stride, const uint16_t* output_scales) {
        float32x4_t of_output[J];
#pragma GCC unroll 4
        for (int j = 0; j < J; ++j) of_output[j] = load_four_halves(output_scales + 4 * j);
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m) {
            const float scale = scales[static_cast<size_t>(m) * scale_stride];
#pragma GCC unroll 4
            for (int j = 0; j < J; ++j) {
                const float32x4_t sum = vsubq_f32(vreinterpretq_f32_s32(sums.v[m][j]), vdupq_n_f32(kMagic));
                v[m][j] = vfmaq_n_f32(v[m][j], vmulq_f32(sum, of_output[j]), scale);
            }
        }
    }

    AXON_INLINE void write(float* out, int out_stride) const {
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
            for (int j = 0; j < J; ++j) vst1q_f32(out + static_cast<size_t>(m) * out_stride + 4 * j, v[m][j]);
    }
};

// Sums and totals of all 16 outputs fill the 32 registers from 3 rows on; half a panel at a time leaves room.
template <int M>
constexpr int kColumns = M <= 2 ? 4 : 2;

// out[m][16] = sum over groups of (row's scale) x ((output's scale) x (whole-number product of the group)).
// Meanwhile `ahead_lines` lines of memory from `ahead` on are prefetched for every 16 inputs.
template <int M>
void product(const int8_t* rows, int stride, const float* scales, int scale_stride, const int8_t* panel,
             const uint16_t* panel_scales, int num_groups, float* out, int out_stride, const int8_t* ahead,
             int ahead_lines) {
    constexpr int J = kColumns<M>;
    const int lines = ahead_lines * J / 4;
    for (int column = 0; column < 4; column += J) {
        const int8_t* at = panel + 16 * column;
        Totals<M, J> totals;
        for (int group = 0; group < num_groups; ++group) {
            Sums<M, J> sums(kMagicBits);
#pragma GCC unroll 4
            for (int k = 0; k < kGroup; k += 16) {
                for (int line = 0; line < lines; ++line, ahead += 64) prefetch(ahead);
                sums.add_sixteen(rows + group * kGroup + k, stride, at + 16 * k);
            }
            at += 16 * kGroup;
            totals.add(sums, scales + group, scale_stride, panel_scales + 16 * group + 4 * column);
        }
        totals.write(out + 4 * column, out_stride);
    }
}

// out[m][16]: whole-number products of M rows with one panel.
template <int M>
void dot(const int8_t* rows, int stride, const int8_t* panel, int num_inputs, int32_t* out) {
    Sums<M, 4> sums(kZeros);
    for (int k = 0; k < num_inputs; k += 16) sums.add_sixteen(rows + k, stride, panel + 16 * k);
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) vst1q_s32(out + 16 * m + 4 * j, sums.v[m][j]);
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

}  // namespace
}  // namespace axon
