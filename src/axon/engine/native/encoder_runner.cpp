// The C interface of an encoder: builds a model, keeps its memory and threads, runs passes. Compiled for every machine
// of the architecture; the arithmetic is in encoder.cpp.

#include <cstring>
#include <memory>
#include <vector>

#include "instruction_sets.h"
#include "memory.h"
#include "team.h"

namespace axon {
namespace {

constexpr int kUnitPanels = kGroup / kLanes > 2 ? kGroup / kLanes : 2;  // the most panels of a unit of a product

class EncoderRunner {
 public:
    EncoderRunner(const EncoderShape& shape, int num_threads, const InstructionSet& set)
        : encode_(set.encode), layers_(shape.layers), team_(std::max(num_threads, 1)), scratch_(team_.size()) {
        model_.shape = shape;
        model_.layers = layers_.data();
    }

    EncoderModel& model() { return model_; }

    // The first call of a pass has stage 0; the later ones find what it computed.
    void run(const Pass& asked) {
        if (asked.first_stage == 0) reserve(asked);
        Pass carved = pass_;
        pass_ = asked;
        keep(carved);
        std::memset(pass_.counters, 0, sizeof(int32_t) * pass_.counter_stride * team_.size());
        team_.run([](void* self, int thread) { static_cast<EncoderRunner*>(self)->work(thread); }, this);
    }

 private:
    EncoderModel model_{};
    EncodeFunction encode_;
    std::vector<EncoderLayer> layers_;
    Team team_;
    std::vector<EncoderScratch> scratch_;
    std::unique_ptr<Memory> buffers_;
    int rows_reserved_ = 0, longest_reserved_ = 0;
    Pass pass_{};

    void work(int thread) { encode_(model_, pass_, thread); }

    void keep(const Pass& carved) {
        pass_.hidden = carved.hidden;
        pass_.seen = carved.seen;
        pass_.inner = carved.inner;
        pass_.qkv = carved.qkv;
        pass_.sums = carved.sums;
        pass_.counters = carved.counters;
        pass_.scratch = scratch_.data();
        pass_.counter_stride = num_counters();
        pass_.num_threads = team_.size();
        pass_.team = &team_;
    }

    // Of one thread, in whole lines of memory.
    int num_counters() const { return round_up(model_.shape.stages() * kLoopsPerStage + 8, 16); }

    // Larger buffers where the pass needs them. Without memory for them everything stays as it was.
    void reserve(const Pass& pass) {
        int longest = 0;
        for (int input = 0; input < pass.num_inputs; ++input)
            longest = std::max(longest, pass.starts[input + 1] - pass.starts[input]);
        if (pass.num_rows <= rows_reserved_ && longest <= longest_reserved_) return;
        const int rows = std::max(rows_reserved_, round_up(pass.num_rows, kRowPadding));
        longest = std::max(longest_reserved_, round_up(longest, kLanes));
        Carver measure(nullptr);
        Pass measured{};
        std::vector<EncoderScratch> pieces(scratch_.size());
        carve(measure, rows, longest, measured, pieces);
        buffers_ = std::make_unique<Memory>(measure.used());
        Carver carver(buffers_->as<uint8_t>());
        carve(carver, rows, longest, pass_, scratch_);
        rows_reserved_ = rows;
        longest_reserved_ = longest;
    }

    void carve(Carver& carver, size_t rows, size_t longest, Pass& pass, std::vector<EncoderScratch>& pieces) const {
        const EncoderShape& shape = model_.shape;
        pass.hidden = carve_rows(carver, rows, shape.hidden);
        pass.seen = carve_rows(carver, rows, shape.hidden);
        pass.inner = carve_rows(carver, rows, shape.intermediate);
        pass.qkv = carver.take<float>(rows * 3 * shape.hidden);
        pass.sums = carver.take<float>(rows * shape.hidden);
        pass.counters = carver.take<int32_t>(num_counters() * team_.size());
        for (EncoderScratch& scratch : pieces) {
            scratch.tile = carver.take<float>((kEncoderStretch + kRowPadding) * kUnitPanels * kLanes);
            scratch.keys = carver.take<float>(longest * shape.head_dim());
            scratch.values = carver.take<float>(longest * shape.head_dim());
            scratch.scores = carver.take<float>(kMostFloatRows * longest);
        }
    }

    static EncoderRows carve_rows(Carver& carver, size_t rows, int width) {
        const int groups = (width + kGroup - 1) / kGroup, padded = groups * kGroup;
        float* values = carver.take<float>(rows * width);
        return {values, width,
                {carver.take<int8_t>(rows * padded), carver.take<float>(rows * groups), carver.take<int32_t>(rows * groups),
                 padded, groups}};
    }
};

EncoderLinear* linear_of(EncoderModel& model, int layer, int which) {
    EncoderLayer& weights = model.layers[layer];
    EncoderLinear* linears[] = {&weights.qkv, &weights.output, &weights.up, &weights.down};
    return linears[which];
}

const float** vector_of(EncoderModel& model, int layer, int which) {
    if (layer < 0) {
        const float** vectors[] = {&model.words, &model.positions, &model.types, &model.embedding_norm.weight,
                                   &model.embedding_norm.bias};
        return vectors[which];
    }
    EncoderLayer& weights = model.layers[layer];
    const float** vectors[] = {&weights.norm.weight, &weights.norm.bias, &weights.last_norm.weight,
                               &weights.last_norm.bias};
    return vectors[which];
}

}  // namespace
}  // namespace axon

using axon::EncoderRunner;

#define AXON_API extern "C" __attribute__((visibility("default")))

// Null when memory is short or the instruction set is not here.
AXON_API EncoderRunner* axon_create_encoder(const axon::EncoderShape* shape, int num_threads, const char* set_name) {
    const axon::InstructionSet* set = axon::find(set_name);
    if (!set) return nullptr;
    try {
        return new EncoderRunner(*shape, num_threads, *set);
    } catch (...) {
        return nullptr;
    }
}

AXON_API void axon_destroy_encoder(EncoderRunner* runner) { delete runner; }

// Weights are not copied: they must outlive the runner. In a layer 0 is qkv, 1 output, 2 up, 3 down. Without scales the
// panels are float32.
AXON_API void axon_set_encoder_linear(EncoderRunner* runner, int layer, int which, const void* panels,
                                      const uint16_t* scales, const float* bias, int num_panels, int num_inputs) {
    *axon::linear_of(runner->model(), layer, which) = {panels, scales, bias, num_panels, num_inputs};
}

// Layer -1: 0 is the words' embedding, 1 the positions', 2 the types', 3 and 4 weight and bias of the embedding's norm;
// in a layer 0 and 1 are those of the norm after attention, 2 and 3 of the last one.
AXON_API void axon_set_encoder_vector(EncoderRunner* runner, int layer, int which, const float* values) {
    *axon::vector_of(runner->model(), layer, which) = values;
}

// Computes the stages [first_stage, last_stage) of a pass over these inputs; the last one writes their vectors. A pass
// begins with stage 0, and its calls have the same inputs. Returns 0, or -1 when memory is short.
AXON_API int axon_encode(EncoderRunner* runner, const int32_t* tokens, const int32_t* positions,
                         const int32_t* types, int num_rows, const int32_t* starts, int num_inputs, int first_stage,
                         int last_stage, float* vectors) {
    axon::Pass pass{};
    pass.tokens = tokens;
    pass.positions = positions;
    pass.types = types;
    pass.num_rows = num_rows;
    pass.starts = starts;
    pass.num_inputs = num_inputs;
    pass.first_stage = first_stage;
    pass.last_stage = last_stage;
    pass.vectors = vectors;
    try {
        runner->run(pass);
    } catch (const std::bad_alloc&) {
        return -1;
    }
    return 0;
}
