// The MLP of one layer: a plain one, or a mixture of experts. Knows no attention.
#pragma once

namespace axon {
namespace {

class MlpBlock {
 public:
    explicit MlpBlock(Walk& walk)
        : walk_(walk), shape_(walk.shape), step_(walk.step), scratch_(walk.scratch) {}

    void run(int index) {
        const Layer& layer = walk_.model.layers[index];
        if (layer.experts)
            run_experts(layer);
        else
            run_plain(layer, index * kProducts + 2);
    }

 private:
    Walk& walk_;
    const Shape& shape_;
    const Step& step_;
    Scratch& scratch_;

    // A unit of gate_up is as many panels of gate and up as make one group of down's inputs.
    static constexpr int kGateUnit = 2 * kGroup / kLanes, kDownUnit = 2;

    void run_plain(const Layer& layer, int gate_up) {
        const QuantisedRows input = walk_.quantise_rows(step_.num_rows, [&](int row, const QuantisedRows& to) {
            walk_.normalise(walk_.hidden_of(row), layer.mlp_norm, row, to);
        });
        walk_.multiply(layer.gate_up, input, step_.num_rows, kGateUnit, gate_up, [&](int unit, int row, int count) {
            gate_rows(layer.gate_up, unit, row, count, step_.inner);
        });
        walk_.everyone_done();
        walk_.add_product(layer.down, step_.inner, gate_up + 1, layer.mlp_post);
        walk_.everyone_done();
    }

    void gate_rows(const Linear& linear, int unit, int row, int count, const QuantisedRows& to) {
        for (int i = 0; i < count; ++i) gate(linear, unit, scratch_.tile + i * kGateUnit * kLanes, row + i, to);
    }

    // activation(gate) * up of one group, straight to int8. All activations are x * sigmoid(slope).
    void gate(const Linear& linear, int unit, const float* tile, int row, const QuantisedRows& to) {
        alignas(64) float group[kGroup];
        for (int i = 0; i < kGroup; i += kLanes) {
            const int output = (unit * kGroup + i) * 2;
            Lanes gate = walk_.output_of(linear, tile + 2 * i, output);
            Lanes up = walk_.output_of(linear, tile + 2 * i + kLanes, output + kLanes);
            Lanes slope = shape_.activation == 0 ? gate : gelu_slope(gate);
            if (shape_.gate_limit > 0) {
                const Lanes limit = splat(shape_.gate_limit);
                gate = min(gate, limit);
                up = max(min(up, limit), splat(0.0f) - limit) + splat(1.0f);
                slope = gate * splat(shape_.gate_slope);
            }
            store(group + i, gate / (splat(1.0f) + exponential(min(splat(0.0f) - slope, splat(88.0f)))) * up);
        }
        quantise_group(group, to, row, unit * kGroup);
    }

    // GELU by tanh is x * sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)).
    Lanes gelu_slope(Lanes x) { return splat(1.5957691216f) * fma(splat(0.044715f) * x * x, x, x); }

    // ---- experts ----------------------------------------------------------------------------------------------------
    // The rows of an expert are computed together, so that a step reads each expert's weights once. A pair is a row and
    // one of its experts; pairs are in the order of their experts, then of their rows. A row adds up its experts in the
    // order of their numbers, whoever else is in the batch.

    void run_experts(const Layer& layer) {
        const Choices choices = is_small() ? scratch_.choices : step_.choices;
        const QuantisedRows input = walk_.quantise_rows(step_.num_rows, [&](int row, const QuantisedRows& to) {
            walk_.normalise_floats(walk_.hidden_of(row), layer.mlp_norm, scratch_.tile);
            quantise_groups(scratch_.tile, walk_.model.hidden_stride, to, row, 0);
            choose(layer, scratch_.tile, row, choices);
        });
        const int num_active = sort_pairs(choices);
        const QuantisedRows gathered = gather(input);
        multiply_gates(layer, gathered, num_active);
        walk_.everyone_done();
        add_experts(layer, num_active);
        walk_.everyone_done();
    }

    // So few rows that each thread does for itself what comes before the products.
    bool is_small() const { return step_.num_rows <= kOwnQuantisedRows; }

    // The router in float32: the row's likeliest experts, by their numbers, and their weights.
    void choose(const Layer& layer, const float* row_values, int row, const Choices& choices) {
        alignas(64) float likely[kMaxExperts];
        const int count = shape_.experts_per_token;
        int32_t* chosen = choices.experts + static_cast<size_t>(row) * count;
        float* weights = choices.weights + static_cast<size_t>(row) * count;
        float total = rate(layer, row_values, likely);
        take_likeliest(likely, chosen, weights);
        if (shape_.normalises_experts) {
            total = 0;
            for (int i = 0; i < count; ++i) total += weights[i];
        }
        for (int i = 0; i < count; ++i) weights[i] /= total;
    }

    // e^(logit - the largest) of every expert, and their sum.
    float rate(const Layer& layer, const float* row_values, float* likely) {
        const int inputs = walk_.model.hidden_stride;
        Lanes peaks = splat(-1e30f), total = splat(0);
        for (int first = 0; first < shape_.experts; first += kLanes) {
            multiply_floats(row_values, inputs, 1, layer.router + static_cast<size_t>(first) * inputs, inputs,
                            likely + first, kLanes);
            if (layer.router_bias) store(likely + first, load(likely + first) + load(layer.router_bias + first));
            peaks = max(peaks, first_or(load(likely + first), smaller(kLanes, shape_.experts - first), -1e30f));
        }
        const Lanes peak = splat(largest(peaks));
        for (int first = 0; first < shape_.experts; first += kLanes) {
            const int count = smaller(kLanes, shape_.experts - first);
            const Lanes weight = first_or(exponential(load(likely + first) - peak), count, 0);
            store(likely + first, weight);
            total = total + weight;
        }
        return sum(total);
    }

    // The lowest number wins a tie.
    void take_likeliest(float* likely, int32_t* chosen, float* weights) {
        for (int i = 0; i < shape_.experts_per_token; ++i) {
            int best = 0;
            for (int expert = 1; expert < shape_.experts; ++expert)
                if (likely[expert] > likely[best]) best = expert;
            int at = i;
            for (; at > 0 && chosen[at - 1] > best; --at) {
                chosen[at] = chosen[at - 1];
                weights[at] = weights[at - 1];
            }
            chosen[at] = best;
            weights[at] = likely[best];
            likely[best] = -1;
        }
    }

    // A counting sort of all pairs by their experts; returns the number of experts that have any.
    int sort_pairs(const Choices& choices) {
        Routes& routes = scratch_.routes;
        const int per_row = shape_.experts_per_token, num_pairs = step_.num_rows * per_row;
        for (int i = 0; i <= shape_.experts; ++i) routes.starts[i] = 0;
        for (int i = 0; i < num_pairs; ++i) ++routes.starts[choices.experts[i] + 1];
        int num_active = 0;
        for (int expert = 0; expert < shape_.experts; ++expert) {
            if (routes.starts[expert + 1] > 0) routes.active[num_active++] = expert;
            routes.starts[expert + 1] += routes.starts[expert];
            routes.next[expert] = routes.starts[expert];
        }
        for (int i = 0; i < num_pairs; ++i) {
            const int pair = routes.next[choices.experts[i]]++;
            routes.rows[pair] = i / per_row;
            routes.weights[pair] = choices.weights[i];
        }
        return num_active;
    }

    // The rows of all pairs, one behind the other.
    QuantisedRows gather(const QuantisedRows& input) {
        const int num_pairs = step_.num_rows * shape_.experts_per_token;
        const QuantisedRows to = is_small() ? scratch_.gathered : step_.gathered;
        const auto copy = [&](int pair) { copy_row(input, scratch_.routes.rows[pair], to, pair); };
        if (is_small()) {
            for (int pair = 0; pair < num_pairs; ++pair) copy(pair);
        } else {
            walk_.share(num_pairs, copy);
            walk_.everyone_done();
        }
        return to;
    }

    void copy_row(const QuantisedRows& from, int row, const QuantisedRows& to, int pair) {
        const QuantisedRows a = rows_from(from, row), b = rows_from(to, pair);
        __builtin_memcpy(b.values, a.values, to.stride);
        __builtin_memcpy(b.scales, a.scales, sizeof(float) * to.scale_stride);
        __builtin_memcpy(b.starts, a.starts, sizeof(int32_t) * to.scale_stride);
    }

    int pairs_of(int expert) const { return scratch_.routes.starts[expert + 1] - scratch_.routes.starts[expert]; }

    // Each thread takes units of experts.
    void multiply_gates(const Layer& layer, const QuantisedRows& input, int num_active) {
        const int num_units = layer.experts[0].gate_up.num_panels / kGateUnit;
        walk_.share(num_active * num_units, [&](int i) {
            const int expert = scratch_.routes.active[i / num_units];
            const Linear& linear = layer.experts[expert].gate_up;
            walk_.multiply_unit(linear, input, scratch_.routes.starts[expert], pairs_of(expert), i % num_units, kGateUnit,
                                kNoProduct, [&](int unit, int pair, int count) {
                                    gate_rows(linear, unit, pair, count, step_.expert_inner);
                                });
        });
    }

    // hidden += the weighted outputs of each row's experts. Each thread takes a few outputs of all experts, so that no
    // two write to the same place.
    void add_experts(const Layer& layer, int num_active) {
        const int num_panels = layer.experts[0].down.num_panels;
        walk_.share((num_panels + kDownUnit - 1) / kDownUnit, [&](int unit) {
            for (int i = 0; i < num_active; ++i) {
                const int expert = scratch_.routes.active[i];
                const Linear& down = layer.experts[expert].down;
                walk_.multiply_unit(down, step_.expert_inner, scratch_.routes.starts[expert], pairs_of(expert), unit,
                                    kDownUnit, kNoProduct,
                                    [&](int, int pair, int count) { add_pairs(down, unit, pair, count); });
            }
        });
    }

    void add_pairs(const Linear& down, int unit, int first_pair, int count) {
        for (int i = 0; i < count; ++i) {
            const Lanes weight = splat(scratch_.routes.weights[first_pair + i]);
            float* to = walk_.hidden_of(scratch_.routes.rows[first_pair + i]);
            for (int j = 0; j < kDownUnit && unit * kDownUnit + j < down.num_panels; ++j) {
                const int output = (unit * kDownUnit + j) * kLanes;
                const Lanes values = walk_.output_of(down, scratch_.tile + (i * kDownUnit + j) * kLanes, output);
                store(to + output, fma(values, weight, load(to + output)));
            }
        }
    }
};

}  // namespace
}  // namespace axon
