// Functions of 16 float lanes that several kernels need: the exponential, rows as int8. Knows no model.
#pragma once

namespace axon {
namespace {

// e^x for x up to 88 to about 2 units in the last place: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2].
AXON_INLINE Lanes exponential(Lanes x) {
    x = max(x, splat(-87.0f));
    const Lanes magic = splat(12582912.0f);  // adding 1.5 * 2^23 and taking it away rounds to a whole number
    const Lanes n = fma(x, splat(1.44269504f), magic) - magic;
    Lanes r = fma(n, splat(-0.693359375f), x);
    r = fma(n, splat(2.12194440e-4f), r);
    Lanes p = splat(1.9875691500e-4f);
    p = fma(p, r, splat(1.3981999507e-3f));
    p = fma(p, r, splat(8.3334519073e-3f));
    p = fma(p, r, splat(4.1665795894e-2f));
    p = fma(p, r, splat(1.6666665459e-1f));
    p = fma(p, r, splat(5.0000001201e-1f));
    p = fma(p, r * r, r + splat(1.0f));
    return times_power_of_two(p, n);
}

// Writes count (a multiple of 16) floats as int8 and returns their scale.
inline float quantise(const float* from, int count, int8_t* to) {
    Lanes peaks = splat(0);
    for (int i = 0; i < count; i += kLanes) peaks = max(peaks, abs(load(from + i)));
    const float peak = largest(peaks);
    const Lanes inverse = splat(peak > 0 ? 127.0f / peak : 0.0f);
    for (int i = 0; i < count; i += kLanes) store_int8(to + i, load(from + i) * inverse);
    return peak / 127.0f;
}

// The group of a row that begins with input `at`.
inline void quantise_group(const float* from, const QuantisedRows& to, int row, int at) {
    int8_t* values = to.values + static_cast<size_t>(row) * to.stride + at;
    const size_t group = static_cast<size_t>(row) * to.scale_stride + at / kGroup;
    to.scales[group] = quantise(from, kGroup, values);
    to.starts[group] = start_of(values, kGroup);
}

inline void quantise_groups(const float* from, int count, const QuantisedRows& to, int row, int at) {
    for (int i = 0; i < count; i += kGroup) quantise_group(from + i, to, row, at + i);
}

}  // namespace
}  // namespace axon
