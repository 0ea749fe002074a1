// The product of a few float32 rows with one float32 panel, by the lanes of the tiles that include this. Knows no model.
#pragma once

namespace axon {
namespace {

// out[m][16] = rows[m] x panel, [input][16]. See float_tiles.h.
template <int M>
void float_product(const float* rows, size_t stride, const float* panel, int num_inputs, float* out, int out_stride) {
    Lanes totals[M];
#pragma GCC unroll 12
    for (int m = 0; m < M; ++m) totals[m] = splat(0);
    for (int k = 0; k < num_inputs; ++k) {
        const Lanes weights = load(panel + static_cast<size_t>(k) * kLanes);
#pragma GCC unroll 12
        for (int m = 0; m < M; ++m) totals[m] = fma(splat(rows[m * stride + k]), weights, totals[m]);
    }
#pragma GCC unroll 12
    for (int m = 0; m < M; ++m) store(out + static_cast<size_t>(m) * out_stride, totals[m]);
}

}  // namespace
}  // namespace axon
