// The C interface of the native runner: builds a model, keeps its memory and threads, runs steps. Compiled for every
// machine of the architecture; the arithmetic is in step.cpp, of which the best compiled one is chosen here.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "instruction_sets.h"
#include "memory.h"
#include "model.h"
#include "team.h"

namespace axon {

void meet(Team* team) { team->meet(); }

namespace {

constexpr int kStretchRows = 64;

class Runner {
 public:
    Runner(const Shape& shape, int num_blocks, int num_threads, const InstructionSet& set)
        : step_function_(set.step), layers_(shape.layers),
          experts_(static_cast<size_t>(shape.layers) * shape.experts), team_(std::max(num_threads, 1)) {
        model_.shape = shape;
        model_.layers = layers_.data();
        model_.hidden_stride = round_up(shape.hidden, kGroup);
        model_.heads_stride = round_up(shape.heads * shape.head_dim, kGroup);
        model_.intermediate_stride = round_up(shape.intermediate, kGroup);
        model_.qkv_stride = round_up((shape.heads + 2 * shape.kv_heads) * shape.head_dim, kLanes);
        model_.dim_stride = round_up(shape.head_dim, kLanes);
        model_.kv_head_bytes = kLanes * (2 * model_.dim_stride + 2 * sizeof(float));
        model_.kv_layer_bytes = model_.kv_head_bytes * shape.kv_heads;
        model_.kv_block_bytes = model_.kv_layer_bytes * shape.layers;
        kv_ = std::make_unique<Memory>(model_.kv_block_bytes * num_blocks);
        model_.kv = kv_->as<uint8_t>();
    }

    Model& model() { return model_; }
    Expert* experts_of(int layer) { return experts_.data() + static_cast<size_t>(layer) * model_.shape.experts; }
    Team& team() { return team_; }

    void run(Step step, int32_t* best_tokens) {
        plan(step);
        reserve(step);
        std::memset(step_.counters, 0, sizeof(int32_t) * num_counters() * team_.size());
        team_.run([](void* self, int thread) { static_cast<Runner*>(self)->work(thread); }, this);
        if (best_tokens)
            for (int row = 0; row < step.num_outputs; ++row) best_tokens[row] = best_token(row);
    }

 private:
    Model model_{};
    StepFunction step_function_;
    std::vector<Layer> layers_;
    std::vector<Expert> experts_;
    Team team_;
    std::unique_ptr<Memory> kv_;
    std::unique_ptr<Memory> buffers_;
    size_t rows_reserved_ = 0, parts_reserved_ = 0, low_reserved_ = 0;
    std::vector<Item> items_;
    std::vector<Scratch> scratch_;
    std::vector<Parts> parts_;
    Step step_{};

    void work(int thread) { step_function_(model_, step_, thread); }

    // Of one thread, in whole lines of memory: the others' are elsewhere.
    int num_counters() const { return round_up(model_.shape.layers * kTasksPerLayer + 8, 16); }

    // Cuts the spans into items, and finds the longest context.
    void plan(Step& step) {
        items_.clear();
        step.one_row_spans = step.num_spans == step.num_rows;
        int longest = 1;
        for (int span = 0; span < step.num_spans; ++span) {
            const int end = step.span_starts[span + 1];
            for (int row = step.span_starts[span]; row < end; row += kQueriesPerItem)
                items_.push_back({span, row, std::min(kQueriesPerItem, end - row)});
            longest = std::max(longest, step.positions[end - 1] + 1);
        }
        step.items = items_.data();
        step.num_items = static_cast<int>(items_.size());
        step.num_parts = round_up(longest, kPartTokens) / kPartTokens;
        step.part_stride = round_up(step.num_parts, kLanes);
        // Three KV heads cannot be shared out evenly over two threads; the parts of a long past can.
        step.together = step.num_parts > 1 && step.num_rows <= kOwnQuantisedRows &&
                        step.num_items * model_.shape.kv_heads < 2 * team_.size();
        step.low_stride = widest_rank(step);
        step.counter_stride = num_counters();
        step.num_threads = team_.size();
        step.team = &team_;
    }

    // The most numbers that a first product of the step's adapters has.
    int widest_rank(const Step& step) const {
        int widest = 0;
        for (int row = 0; step.adapters && row < step.num_rows; ++row)
            for (int i = 0; step.adapters[row] && i < model_.shape.layers * kProducts; ++i)
                widest = std::max(widest, step.adapters[row]->products[i].rank);
        return widest;
    }

    // Sets the step's buffers, larger ones where it needs them.
    void reserve(const Step& step) {
        const size_t rows = step.num_rows, parts = step.part_stride, low = step.low_stride;
        if (rows > rows_reserved_ || parts > parts_reserved_ || low > low_reserved_) {
            low_reserved_ = std::max(low_reserved_, low);
            rows_reserved_ = std::max<size_t>(rows_reserved_, round_up(static_cast<int>(rows), kRowPadding));
            parts_reserved_ = std::max(parts_reserved_, parts);
            Carver measure(nullptr);
            carve(measure);
            buffers_ = std::make_unique<Memory>(measure.used());
            Carver carver(buffers_->as<uint8_t>());
            carve(carver);
        }
        const Step carved = step_;
        step_ = step;
        step_.hidden = carved.hidden;
        step_.qkv = carved.qkv;
        step_.seen = carved.seen;
        step_.branch = carved.branch;
        step_.input = carved.input;
        step_.inner = carved.inner;
        step_.choices = carved.choices;
        step_.gathered = carved.gathered;
        step_.expert_inner = carved.expert_inner;
        step_.counters = carved.counters;
        step_.low = carved.low;
        step_.scratch = scratch_.data();
        step_.parts = parts_.data();
    }

    int widest_input() const { return std::max(model_.hidden_stride, model_.heads_stride); }

    void carve(Carver& carver) {
        const size_t rows = rows_reserved_;
        step_.hidden = carver.take<float>(rows * model_.hidden_stride);
        step_.qkv = carver.take<float>(rows * model_.qkv_stride);
        step_.seen = carver.take<float>(rows * model_.heads_stride);
        step_.branch = carver.take<float>(rows * model_.hidden_stride);
        step_.input = carve_rows(carver, rows, widest_input());
        step_.inner = carve_rows(carver, rows, model_.intermediate_stride);
        carve_experts(carver, rows);
        step_.counters = carver.take<int32_t>(num_counters() * team_.size());
        step_.low = carver.take<float>(rows * low_reserved_);
        scratch_.resize(team_.size());
        for (Scratch& scratch : scratch_) carve_scratch(carver, scratch);
        parts_.resize(kOwnQuantisedRows * model_.shape.kv_heads);
        for (Parts& parts : parts_) parts = carve_parts(carver);
    }

    // With room for a wide tile behind the last pair of an expert.
    size_t padded_pairs(size_t rows) const { return rows * model_.shape.experts_per_token + kRowPadding; }

    void carve_experts(Carver& carver, size_t rows) {
        if (model_.shape.experts == 0) return;
        const size_t pairs = padded_pairs(rows);
        step_.choices = {carver.take<int32_t>(pairs), carver.take<float>(pairs)};
        step_.gathered = carve_rows(carver, pairs, model_.hidden_stride);
        step_.expert_inner = carve_rows(carver, pairs, round_up(model_.shape.expert_intermediate, kGroup));
    }

    void carve_routes(Carver& carver, Scratch& scratch) {
        if (model_.shape.experts == 0) return;
        const size_t own = padded_pairs(kOwnQuantisedRows), pairs = padded_pairs(rows_reserved_);
        const size_t experts = model_.shape.experts;
        scratch.choices = {carver.take<int32_t>(own), carver.take<float>(own)};
        scratch.gathered = carve_rows(carver, own, model_.hidden_stride);
        scratch.routes = {carver.take<int32_t>(experts + 1), carver.take<int32_t>(experts),
                          carver.take<int32_t>(experts), carver.take<int32_t>(pairs), carver.take<float>(pairs)};
    }

    QuantisedRows carve_rows(Carver& carver, size_t rows, int width) {
        const int groups = width / kGroup;
        return {carver.take<int8_t>(rows * width), carver.take<float>(rows * groups),
                carver.take<int32_t>(rows * groups), width, groups};
    }

    size_t queries_of_item() const {
        return round_up(kQueriesPerItem * (model_.shape.heads / model_.shape.kv_heads), kRowPadding);
    }

    Parts carve_parts(Carver& carver) {
        const size_t count = queries_of_item() * parts_reserved_;
        return {carver.take<float>(count), carver.take<float>(count), carver.take<float>(count * model_.dim_stride)};
    }

    void carve_scratch(Carver& carver, Scratch& scratch) {
        const size_t queries = queries_of_item(), unit = std::max(2 * kGroup, 8 * kLanes);
        scratch.quantised = carve_rows(carver, kOwnQuantisedRows, widest_input());
        scratch.parts = carve_parts(carver);
        scratch.blocks = carver.take<uint8_t*>(kPartBlocks);
        scratch.scores = carver.take<float>(queries * kPartTokens);
        scratch.weights = carver.take<int8_t>(queries * kPartTokens);
        scratch.weight_scales = carver.take<float>(queries * kPartBlocks);
        scratch.queries = carver.take<int8_t>(queries * model_.dim_stride);
        scratch.query_scales = carver.take<float>(queries);
        scratch.query_starts = carver.take<int32_t>(queries);
        scratch.tile = carver.take<float>(std::max<size_t>(kStretchRows * unit, widest_input()));
        carve_routes(carver, scratch);
        scratch.best_value = carver.take<float>(rows_reserved_);
        scratch.best_token = carver.take<int32_t>(rows_reserved_);
    }

    // The best of what the threads found; the lowest token wins a tie.
    int best_token(int row) const {
        float value = scratch_[0].best_value[row];
        int token = scratch_[0].best_token[row];
        for (const Scratch& scratch : scratch_) {
            const float other = scratch.best_value[row];
            if (other > value || (other == value && scratch.best_token[row] < token)) {
                value = other;
                token = scratch.best_token[row];
            }
        }
        return token;
    }
};

Linear* linear_of(Runner& runner, int layer, int which) {
    Model& model = runner.model();
    if (layer < 0) return which == 0 ? &model.embedding : &model.head;
    Layer& weights = model.layers[layer];
    Linear* linears[] = {&weights.qkv, &weights.output, &weights.gate_up, &weights.down};
    if (which < 4) return linears[which];
    weights.experts = runner.experts_of(layer);
    Expert& expert = weights.experts[(which - 4) / 2];
    return which % 2 == 0 ? &expert.gate_up : &expert.down;
}

const float** vector_of(Model& model, int layer, int which) {
    if (layer < 0) return &model.final_norm;
    Layer& weights = model.layers[layer];
    const float** vectors[] = {&weights.input_norm, &weights.mlp_norm, &weights.query_norm, &weights.key_norm,
                               &weights.qkv.bias, &weights.router, &weights.attention_post, &weights.mlp_post,
                               &weights.rope_cos, &weights.rope_sin};
    return vectors[which];
}

}  // namespace
}  // namespace axon

using axon::Runner;

#define AXON_API extern "C" __attribute__((visibility("default")))

// The instruction set that would be taken for this name ("" for the best), or null.
AXON_API const char* axon_instruction_set(const char* name) {
    const axon::InstructionSet* set = axon::find(name);
    return set ? set->name : nullptr;
}

AXON_API int axon_group_size() { return axon::kGroup; }

// Null when memory is short or the instruction set is not here.
AXON_API Runner* axon_create(const axon::Shape* shape, int num_blocks, int num_threads, const char* instruction_set) {
    const axon::InstructionSet* set = axon::find(instruction_set);
    if (!set) return nullptr;
    try {
        return new Runner(*shape, num_blocks, num_threads, *set);
    } catch (...) {
        return nullptr;
    }
}

AXON_API void axon_destroy(Runner* runner) { delete runner; }

// The runner's threads, for a sampler that works between its steps.
AXON_API axon::Team* axon_team(Runner* runner) { return &runner->team(); }

AXON_API uint64_t axon_block_bytes(Runner* runner) { return runner->model().kv_block_bytes; }

// The first byte of the KV blocks, which stand one behind the other.
AXON_API uint8_t* axon_blocks(Runner* runner) { return runner->model().kv; }

// Weights are not copied: they must outlive the runner. Layer -1: 0 is the embedding, 1 the head; in a layer 0 is qkv,
// 1 output, 2 gate_up, 3 down, then gate_up and down of each expert in turn.
AXON_API void axon_set_linear(Runner* runner, int layer, int which, const int8_t* panels, const uint16_t* scales,
                              int num_panels, int num_inputs) {
    axon::Linear& linear = *axon::linear_of(*runner, layer, which);
    linear = {panels, scales, linear.bias, num_panels, num_inputs};
}

// Layer -1: the final norm; in a layer 0 is the input norm, 1 the MLP's, 2 the queries', 3 the keys', 4 the bias of qkv,
// 5 the router's panels, 6 the norm of attention's output, 7 of the MLP's, 8 the cosines, 9 the sines.
AXON_API void axon_set_vector(Runner* runner, int layer, int which, const float* values) {
    *axon::vector_of(runner->model(), layer, which) = values;
}

// Tokens that a query of the layer sees, its own included; 0: all.
AXON_API void axon_set_window(Runner* runner, int layer, int window) { runner->model().layers[layer].window = window; }

// An adapter of the runner's model; null when memory is short. No step may run that names it when it is destroyed.
AXON_API axon::Adapter* axon_create_adapter(Runner* runner) {
    const size_t count = static_cast<size_t>(runner->model().shape.layers) * axon::kProducts;
    auto* products = new (std::nothrow) axon::LowRank[count]();
    auto* adapter = products ? new (std::nothrow) axon::Adapter{products} : nullptr;
    if (!adapter) delete[] products;
    return adapter;
}

AXON_API void axon_destroy_adapter(axon::Adapter* adapter) {
    delete[] adapter->products;
    delete adapter;
}

// What it adds to a product of a layer, numbered as in axon_set_linear. The numbers are not copied: they must outlive it.
AXON_API void axon_set_low_rank(axon::Adapter* adapter, int layer, int which, const float* down, const float* up,
                                const axon::Slice* slices, int num_inputs, int rank) {
    adapter->products[layer * axon::kProducts + which] = {down, up, slices, num_inputs, rank};
}

// Computes spans of consecutive tokens and, for the named rows, logits (where not null) and the best token each.
// Returns 0, or -1 when memory is short.
AXON_API int axon_step(Runner* runner, const int32_t* tokens, const int32_t* positions, int num_rows,
                       const int32_t* span_starts, int num_spans, const int32_t* block_ids, const int32_t* table_starts,
                       const int32_t* output_rows, int num_outputs, float* logits, int32_t* best_tokens,
                       const axon::Adapter* const* adapters) {
    axon::Step step{};
    step.tokens = tokens;
    step.positions = positions;
    step.num_rows = num_rows;
    step.span_starts = span_starts;
    step.num_spans = num_spans;
    step.block_ids = block_ids;
    step.table_starts = table_starts;
    step.output_rows = output_rows;
    step.num_outputs = num_outputs;
    step.logits = logits;
    step.adapters = adapters;
    try {
        runner->run(step, best_tokens);
    } catch (const std::bad_alloc&) {
        return -1;
    }
    return 0;
}
