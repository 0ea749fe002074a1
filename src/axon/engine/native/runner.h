// A model's native memory, buffers and threads, and the steps that run on them. Compiled for every machine of the
// architecture; the arithmetic is in step.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "instruction_sets.h"
#include "memory.h"
#include "model.h"
#include "team.h"

namespace axon {

constexpr int kStretchRows = 64;

class Runner {
 public:
    Runner(const Shape& shape, int num_blocks, int num_threads, const InstructionSet& set)
        : Runner(shape, set, std::make_unique<Team>(std::max(num_threads, 1)), nullptr) {
        model_.kv_block_bytes = model_.kv_layer_bytes * shape.layers + shape.head_bytes;
        kv_ = std::make_unique<Memory>(model_.kv_block_bytes * num_blocks);
        model_.kv = kv_->as<uint8_t>();
    }

    // A draft head of one layer: it has the threads of its target, and its memory behind the target's in every block.
    Runner(const Shape& shape, Runner& target, const InstructionSet& set) : Runner(shape, set, nullptr, &target.team_) {
        const Model& theirs = target.model_;
        const size_t first = theirs.kv_layer_bytes * theirs.shape.layers;
        model_.kv = theirs.kv + first;
        model_.kv_block_bytes = theirs.kv_block_bytes;
        model_.rows_offset = model_.kv_layer_bytes;
        model_.layers[0].skipped = 1;
        target.model_.taps.offset = first + model_.rows_offset;
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

    // Of the latest step: what a row has become, and how sure its best token is, by the softmax of the step's heats.
    const float* hidden_of(int row) const { return step_.hidden + static_cast<size_t>(row) * model_.hidden_stride; }
    float confidence(int row) const {
        float peak = -1e30f, total = 0;
        for (const Scratch& scratch : scratch_) peak = std::max(peak, scratch.best_value[row]);
        for (const Scratch& scratch : scratch_)
            total += scratch.best_sum[row] * std::exp((scratch.best_value[row] - peak) * step_.heats[row]);
        return 1 / total;
    }

 private:
    Model model_{};
    StepFunction step_function_;
    std::vector<Layer> layers_;
    std::vector<Expert> experts_;
    std::unique_ptr<Team> own_team_;
    Team& team_;
    std::unique_ptr<Memory> kv_;
    std::unique_ptr<Memory> buffers_;
    size_t rows_reserved_ = 0, parts_reserved_ = 0, low_reserved_ = 0;
    std::vector<Item> items_;
    std::vector<int32_t> row_blocks_;
    std::vector<Scratch> scratch_;
    std::vector<Parts> parts_;
    Step step_{};

    Runner(const Shape& shape, const InstructionSet& set, std::unique_ptr<Team> own, Team* team)
        : step_function_(set.step), layers_(shape.layers),
          experts_(static_cast<size_t>(shape.layers) * shape.experts), own_team_(std::move(own)),
          team_(team ? *team : *own_team_) {
        model_.shape = shape;
        model_.layers = layers_.data();
        model_.hidden_stride = round_up(shape.hidden, kGroup);
        model_.heads_stride = round_up(shape.heads * shape.head_dim, kGroup);
        model_.intermediate_stride = round_up(shape.intermediate, kGroup);
        model_.qkv_stride = round_up((shape.heads + 2 * shape.kv_heads) * shape.head_dim, kLanes);
        model_.dim_stride = round_up(shape.head_dim, kLanes);
        model_.kv_head_bytes = kLanes * (2 * model_.dim_stride + 2 * sizeof(float));
        model_.kv_layer_bytes = model_.kv_head_bytes * shape.kv_heads;
    }

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
        find_blocks(step);
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

    // The blocks of the head's rows: those that its target writes, or that the head reads, of the tokens before its own.
    void find_blocks(Step& step) {
        row_blocks_.clear();
        const int back = model_.embedding_norm ? 1 : 0;
        if (!back && !model_.taps.fuse.panels) return;
        for (const Item& item : items_)
            for (int row = item.first_row; row < item.first_row + item.num_rows; ++row) {
                const int position = step.positions[row] - back;
                const int32_t* table = step.block_ids + step.table_starts[item.span];
                row_blocks_.push_back(position < 0 ? -1 : table[position / kLanes]);
            }
        step.row_blocks = row_blocks_.data();
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
        step_.features = carved.features;
        step_.choices = carved.choices;
        step_.gathered = carved.gathered;
        step_.expert_inner = carved.expert_inner;
        step_.counters = carved.counters;
        step_.low = carved.low;
        step_.scratch = scratch_.data();
        step_.parts = parts_.data();
    }

    int widest_input() const {
        return std::max(model_.hidden_stride * (model_.embedding_norm ? 2 : 1), model_.heads_stride);
    }

    void carve(Carver& carver) {
        const size_t rows = rows_reserved_;
        step_.hidden = carver.take<float>(rows * model_.hidden_stride);
        step_.qkv = carver.take<float>(rows * model_.qkv_stride);
        step_.seen = carver.take<float>(rows * model_.heads_stride);
        step_.branch = carver.take<float>(rows * model_.hidden_stride);
        step_.input = carve_rows(carver, rows, widest_input());
        step_.inner = carve_rows(carver, rows, model_.intermediate_stride);
        if (model_.taps.fuse.panels) step_.features = carve_rows(carver, rows, kFeatures * model_.hidden_stride);
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
        scratch.best_sum = carver.take<float>(rows_reserved_);
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

}  // namespace axon
