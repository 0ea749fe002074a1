// 16 float lanes on Arm. Same results, bit by bit, as tile_scalar.h.
#pragma once

#include <arm_neon.h>

namespace axon {
namespace {

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

}  // namespace
}  // namespace axon
