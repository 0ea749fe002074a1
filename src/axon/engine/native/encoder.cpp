// Encoders of the BERT family over a batch of inputs without padding. Knows no Python and no threads but its own number.
// Compiled once for each instruction set, as step.cpp is: AXON_ENCODE is the entry point, the only name with linkage.
//
// An input is its own, bit by bit: rows are multiplied in a fixed order of inputs whatever tile they are in, and a row
// attends to the rows of its own input alone.

#include "encoder.h"

#include AXON_TILE
#include AXON_WIDE

#include "tiles.h"
#include "float_tiles.h"
#include "numbers.h"
#include "shared_loops.h"

namespace axon {
namespace {

static_assert(kFloatRows <= kMostFloatRows, "buffers must have room for a tile");

// erf(x) to 1.5e-7 (Abramowitz and Stegun 7.1.26), for x >= 0.
AXON_INLINE Lanes error_function(Lanes x) {
    const Lanes t = splat(1.0f) / fma(splat(0.3275911f), x, splat(1.0f));
    Lanes p = splat(1.061405429f);
    p = fma(p, t, splat(-1.453152027f));
    p = fma(p, t, splat(1.421413741f));
    p = fma(p, t, splat(-0.284496736f));
    p = fma(p, t, splat(0.254829592f));
    return splat(1.0f) - p * t * exponential(splat(0.0f) - x * x);
}

// x / 2 + |x| / 2 * erf(|x| / sqrt 2): erf is odd.
AXON_INLINE Lanes gelu(Lanes x) {
    const Lanes half = splat(0.5f) * x, magnitude = abs(x);
    return fma(splat(0.5f) * magnitude, error_function(magnitude * splat(0.70710678f)), half);
}

// x / (1 + e^(-2 u)) with u = sqrt(2 / pi) (x + 0.044715 x^3): gelu with a hyperbolic tangent.
AXON_INLINE Lanes gelu_tanh(Lanes x) {
    const Lanes u = x * fma(x * x, splat(0.044715f), splat(1.0f)) * splat(0.79788456f);
    return x / (splat(1.0f) + exponential(min(splat(-2.0f) * u, splat(88.0f))));
}

AXON_INLINE Lanes activate(Lanes x, int activation) {
    return activation == kGelu ? gelu(x) : activation == kRelu ? max(x, splat(0)) : gelu_tanh(x);
}

// One thread's way through some stages of a pass.
class EncoderWalk {
 public:
    EncoderWalk(const EncoderModel& model, const Pass& pass, int thread)
        : model_(model), shape_(model.shape), pass_(pass), scratch_(pass.scratch[thread]),
          loops_(pass.counters, pass.counter_stride, pass.num_threads, thread) {}

    void run() {
        if (pass_.first_stage == 0) embed();
        for (int stage = pass_.first_stage; stage < pass_.last_stage; ++stage) {
            const EncoderLayer& layer = model_.layers[stage / 2];
            if (stage % 2 == 0)
                attention_block(layer);
            else
                mlp_block(layer, stage + 1 < shape_.stages() ? &model_.layers[stage / 2 + 1] : nullptr);
        }
        if (pass_.last_stage == shape_.stages()) pool();
    }

 private:
    const EncoderModel& model_;
    const EncoderShape& shape_;
    const Pass& pass_;
    EncoderScratch& scratch_;
    SharedLoops loops_;

    void everyone_done() { meet(pass_.team); }

    static float* row_of(const EncoderRows& rows, int row) {
        return rows.values + static_cast<size_t>(row) * rows.stride;
    }

    // ---- embedding and norms ----------------------------------------------------------------------------------------

    void embed() {
        loops_.share(pass_.num_rows, [&](int row) {
            const float* word = model_.words + static_cast<size_t>(pass_.tokens[row]) * shape_.hidden;
            const float* position = model_.positions + static_cast<size_t>(pass_.positions[row]) * shape_.hidden;
            const float* type = model_.types + static_cast<size_t>(pass_.types[row]) * shape_.hidden;
            float* sum = sums_of(row);
            for (int i = 0; i < shape_.hidden; i += kLanes)
                store(sum + i, load(word + i) + load(type + i) + load(position + i));
            normalise(row, model_.embedding_norm, model_.layers[0].qkv);
        });
        everyone_done();
    }

    float* sums_of(int row) { return pass_.sums + static_cast<size_t>(row) * shape_.hidden; }

    // LayerNorm of a row of sums into hidden, as the next product takes it.
    void normalise(int row, const LayerNorm& norm, const EncoderLinear& next) {
        const float* from = sums_of(row);
        float* to = row_of(pass_.hidden, row);
        Lanes total = splat(0), squares = splat(0);
        for (int i = 0; i < shape_.hidden; i += kLanes) total = total + load(from + i);
        const Lanes mean = splat(sum(total) / static_cast<float>(shape_.hidden));
        for (int i = 0; i < shape_.hidden; i += kLanes) {
            const Lanes off = load(from + i) - mean;
            squares = fma(off, off, squares);
        }
        const float variance = sum(squares) / static_cast<float>(shape_.hidden);
        const Lanes scale = splat(1.0f / __builtin_sqrtf(variance + shape_.norm_epsilon));
        for (int i = 0; i < shape_.hidden; i += kLanes)
            store(to + i, fma((load(from + i) - mean) * scale, load(norm.weight + i), load(norm.bias + i)));
        if (next.scales) quantise_groups(to, shape_.hidden, pass_.hidden.quantised, row, 0);
    }

    void normalise_all(const LayerNorm& norm, const EncoderLinear& next) {
        loops_.share(pass_.num_rows, [&](int row) { normalise(row, norm, next); });
        everyone_done();
    }

    // ---- products ---------------------------------------------------------------------------------------------------

    // Computes rows x linear in units of a few panels and hands each piece, [rows][unit x 16] in the tile, to
    // finish(first panel, number of panels, first row, number of rows).
    template <int kUnit, class Finish>
    void multiply(const EncoderLinear& linear, const EncoderRows& rows, Finish finish) {
        loops_.share((linear.num_panels + kUnit - 1) / kUnit, [&](int unit) {
            const int first = unit * kUnit, last = smaller(first + kUnit, linear.num_panels);
            for (int row = 0; row < pass_.num_rows; row += kEncoderStretch) {
                const int count = smaller(kEncoderStretch, pass_.num_rows - row);
                for (int panel = first; panel < last; ++panel)
                    multiply_panel(linear, panel, rows, row, count, scratch_.tile + (panel - first) * kLanes,
                                   kUnit * kLanes);
                for (int i = 0; i < count; ++i)
                    for (int panel = first; panel < last; ++panel) {
                        float* at = scratch_.tile + (i * kUnit + panel - first) * kLanes;
                        store(at, load(at) + load(linear.bias + panel * kLanes));
                    }
                finish(first, last - first, row, count);
            }
        });
        everyone_done();
    }

    void multiply_panel(const EncoderLinear& linear, int panel, const EncoderRows& rows, int row, int count, float* out,
                        int out_stride) {
        const size_t weights = static_cast<size_t>(panel) * linear.num_inputs * kLanes;
        if (!linear.scales) {
            multiply_floats(row_of(rows, row), rows.stride, count, static_cast<const float*>(linear.panels) + weights,
                            linear.num_inputs, out, out_stride);
            return;
        }
        const int num_groups = linear.num_inputs / kGroup;
        const uint16_t* scales = linear.scales + static_cast<size_t>(panel) * num_groups * kLanes;
        const int8_t* at = static_cast<const int8_t*>(linear.panels) + weights;
        for (int done = 0, tile; done < count; done += tile) {
            tile = rows_at_once(count - done);
            multiply_tiles(tile, rows_from(rows.quantised, row + done), at, scales, num_groups,
                           out + static_cast<size_t>(done) * out_stride, out_stride, at, 0);
        }
    }

    // sums = hidden + rows x linear + bias.
    void multiply_and_add(const EncoderLinear& linear, const EncoderRows& rows) {
        constexpr int kUnit = 2;
        multiply<kUnit>(linear, rows, [&](int first, int panels, int row, int count) {
            for (int i = 0; i < count; ++i)
                for (int j = 0; j < panels; ++j) {
                    const int output = (first + j) * kLanes;
                    store(sums_of(row + i) + output, load(scratch_.tile + (i * kUnit + j) * kLanes) +
                                                         load(row_of(pass_.hidden, row + i) + output));
                }
        });
    }

    // ---- a layer ----------------------------------------------------------------------------------------------------

    void attention_block(const EncoderLayer& layer) {
        constexpr int kUnit = 2;
        multiply<kUnit>(layer.qkv, pass_.hidden, [&](int first, int panels, int row, int count) {
            for (int i = 0; i < count; ++i)
                for (int j = 0; j < panels; ++j)
                    store(qkv_of(row + i) + (first + j) * kLanes, load(scratch_.tile + (i * kUnit + j) * kLanes));
        });
        // From the back: callers put the longest inputs there, and long work is best begun first.
        const int items = pass_.num_inputs * shape_.heads;
        loops_.share(items, [&](int i) { attend((items - 1 - i) / shape_.heads, i % shape_.heads); });
        everyone_done();
        if (layer.output.scales) {
            loops_.share(pass_.num_rows, [&](int row) {
                quantise_groups(row_of(pass_.seen, row), shape_.hidden, pass_.seen.quantised, row, 0);
            });
            everyone_done();
        }
        multiply_and_add(layer.output, pass_.seen);
        normalise_all(layer.norm, layer.up);
    }

    void mlp_block(const EncoderLayer& layer, const EncoderLayer* next) {
        constexpr int kUnit = kGroup / kLanes;  // as many panels as make one group of down's inputs
        multiply<kUnit>(layer.up, pass_.hidden, [&](int first, int panels, int row, int count) {
            for (int i = 0; i < count; ++i) {
                float* to = row_of(pass_.inner, row + i) + first * kLanes;
                for (int j = 0; j < panels; ++j)
                    store(to + j * kLanes,
                          activate(load(scratch_.tile + (i * kUnit + j) * kLanes), shape_.activation));
                if (layer.down.scales) quantise_group(to, pass_.inner.quantised, row + i, first * kLanes);
            }
        });
        multiply_and_add(layer.down, pass_.inner);
        normalise_all(layer.last_norm, next ? next->qkv : EncoderLinear{});
    }

    // ---- attention --------------------------------------------------------------------------------------------------

    float* qkv_of(int row) { return pass_.qkv + static_cast<size_t>(row) * 3 * shape_.hidden; }

    // All rows of one input through one head.
    void attend(int input, int head) {
        const int first = pass_.starts[input], num_rows = pass_.starts[input + 1] - first, dim = shape_.head_dim();
        const int padded = round_up(num_rows, kLanes);
        lay_out(first, num_rows, padded, head);
        for (int row = 0, count; row < num_rows; row += count) {
            count = float_rows_at_once(num_rows - row);
            const float* queries = qkv_of(first + row) + head * dim;
            for (int token = 0; token < padded; token += kLanes)
                multiply_floats(queries, 3 * static_cast<size_t>(shape_.hidden), count, scratch_.keys + token * dim,
                                dim, scratch_.scores + token, padded);
            float inverses[kMostFloatRows];
            for (int i = 0; i < count; ++i) inverses[i] = 1.0f / soften(scratch_.scores + i * padded, num_rows, padded);
            alignas(64) float tile[kMostFloatRows * kLanes];
            for (int d = 0; d < dim; d += kLanes) {
                multiply_floats(scratch_.scores, padded, count, scratch_.values + static_cast<size_t>(d) * padded,
                                padded, tile, kLanes);
                for (int i = 0; i < count; ++i)
                    store(row_of(pass_.seen, first + row + i) + head * dim + d,
                          load(tile + i * kLanes) * splat(inverses[i]));
            }
        }
    }

    // Keys and values of one input and head as panels; rows that fill the last panel are zeros.
    void lay_out(int first, int num_rows, int padded, int head) {
        const int dim = shape_.head_dim();
        for (int token = 0; token < padded; ++token) {
            const bool is_there = token < num_rows;
            const float* key = qkv_of(first + (is_there ? token : 0)) + shape_.hidden + head * dim;
            float* to = scratch_.keys + token / kLanes * kLanes * dim + token % kLanes;
            for (int d = 0; d < dim; ++d) to[d * kLanes] = is_there ? key[d] : 0.0f;
            for (int d = 0; d < dim; d += kLanes)
                store(scratch_.values + static_cast<size_t>(d) * padded + token * kLanes,
                      is_there ? load(key + shape_.hidden + d) : splat(0));
        }
    }

    // Replaces scores by exp(score - max) and returns their sum, the softmax's divisor.
    float soften(float* scores, int count, int padded) {
        const Lanes scale = splat(1.0f / __builtin_sqrtf(static_cast<float>(shape_.head_dim())));
        const int last = padded - kLanes, rest = count - last;
        Lanes peaks = first_or(load(scores + last), rest, -1e30f);
        for (int i = 0; i < last; i += kLanes) peaks = max(peaks, load(scores + i));
        const Lanes peak = splat(largest(peaks));
        Lanes total = splat(0);
        for (int i = 0; i < padded; i += kLanes) {
            Lanes weight = exponential((load(scores + i) - peak) * scale);
            if (i == last) weight = first_or(weight, rest, 0);
            store(scores + i, weight);
            total = total + weight;
        }
        return sum(total);
    }

    // ---- vectors ----------------------------------------------------------------------------------------------------

    void pool() {
        loops_.share(pass_.num_inputs, [&](int input) {
            float* vector = pass_.vectors + static_cast<size_t>(input) * shape_.hidden;
            const int first = pass_.starts[input], last = pass_.starts[input + 1] - 1;
            const int from = shape_.pooling == kLast ? last : first, to = shape_.pooling == kFirst ? first : last;
            const Lanes share = splat(shape_.pooling == kMean ? static_cast<float>(last + 1 - first) : 1.0f);
            Lanes squares = splat(0);
            for (int i = 0; i < shape_.hidden; i += kLanes) {
                Lanes pooled = load(row_of(pass_.hidden, from) + i);
                for (int row = from + 1; row <= to; ++row) {
                    const Lanes other = load(row_of(pass_.hidden, row) + i);
                    pooled = shape_.pooling == kMaximum ? max(pooled, other) : pooled + other;
                }
                pooled = pooled / share;
                store(vector + i, pooled);
                squares = fma(pooled, pooled, squares);
            }
            if (shape_.normalises) scale_to_one(vector, __builtin_sqrtf(sum(squares)));
        });
        everyone_done();
    }

    void scale_to_one(float* vector, float length) {
        const Lanes divisor = splat(length > 1e-12f ? length : 1e-12f);
        for (int i = 0; i < shape_.hidden; i += kLanes) store(vector + i, load(vector + i) / divisor);
    }
};

}  // namespace

void AXON_ENCODE(const EncoderModel& model, const Pass& pass, int thread) {
    [[maybe_unused]] const WideTiles tiles;
    EncoderWalk(model, pass, thread).run();
}

}  // namespace axon
