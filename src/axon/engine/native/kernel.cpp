// The C interface of the native runner: builds a model, gives it its weights, runs steps. Compiled for every
// machine of the architecture; the arithmetic is in step.cpp, of which the best compiled one is chosen here.

#include <algorithm>
#include <new>

#include "runner.h"

namespace axon {

void meet(Team* team) { team->meet(); }

namespace {

Linear* linear_of(Runner& runner, int layer, int which) {
    Model& model = runner.model();
    if (layer < 0) return which == 0 ? &model.embedding : which == 1 ? &model.head : &model.taps.fuse;
    Layer& weights = model.layers[layer];
    Linear* linears[] = {&weights.qkv, &weights.output, &weights.gate_up, &weights.down};
    if (which < 4) return linears[which];
    weights.experts = runner.experts_of(layer);
    Expert& expert = weights.experts[(which - 4) / 2];
    return which % 2 == 0 ? &expert.gate_up : &expert.down;
}

const float** vector_of(Model& model, int layer, int which) {
    if (layer < 0) return which == 0 ? &model.final_norm : &model.embedding_norm;
    Layer& weights = model.layers[layer];
    const float** vectors[] = {&weights.input_norm, &weights.mlp_norm, &weights.query_norm, &weights.key_norm,
                               &weights.router, &weights.router_bias, &weights.attention_post, &weights.mlp_post,
                               &weights.sinks, &weights.rope_cos, &weights.rope_sin};
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

// A draft head, for a model that was created with room for it; layers: of the model, those whose inputs the head takes.
// It must be destroyed before the model. Null when memory is short or the instruction set is not here.
AXON_API Runner* axon_create_head(const axon::Shape* shape, Runner* target, const int32_t* layers,
                                  const char* instruction_set) {
    const axon::InstructionSet* set = axon::find(instruction_set);
    if (!set) return nullptr;
    try {
        std::copy(layers, layers + axon::kFeatures, target->model().taps.layers);
        return new Runner(*shape, *target, *set);
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

// Weights are not copied: they must outlive the runner. Layer -1: 0 is the embedding, 1 the head, 2 what
// fuses the rows of a draft head; in a layer 0 is qkv,
// 1 output, 2 gate_up, 3 down, then gate_up and down of each expert in turn.
AXON_API void axon_set_linear(Runner* runner, int layer, int which, const int8_t* panels, const uint16_t* scales,
                              int num_panels, int num_inputs) {
    axon::Linear& linear = *axon::linear_of(*runner, layer, which);
    linear = {panels, scales, linear.bias, num_panels, num_inputs};
}

// The bias of a linear, numbered as in axon_set_linear: as many floats as its panels have outputs.
AXON_API void axon_set_bias(Runner* runner, int layer, int which, const float* values) {
    axon::linear_of(*runner, layer, which)->bias = values;
}

// Layer -1: 0 is the final norm, 1 a draft head's norm of embeddings; in a layer 0 is the input norm, 1 the MLP's, 2 the
// queries', 3 the keys', 4 the router's panels, 5 its bias, 6 the norm of attention's output, 7 of the MLP's, 8 the
// sinks, 9 the cosines, 10 the sines.
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
