// The rounds of a draft head: each guesses the next token of the streams that go on. Knows no arithmetic and no Python.

#include <chrono>
#include <new>

#include "runner.h"

namespace axon {
namespace {

// What is asked of a head for each span, and where its drafts go.
struct Asked {
    const int32_t* block_ids;
    const int32_t* table_starts;
    const int32_t* num_drafts;
    const float* heats;
    const float* least;
    const float* going;
    const int32_t* ids;  // the token of each output
    int most;
    int32_t* drafts;     // [span][most]
    int32_t* counts;
};

class Drafting {
 public:
    Drafting(Runner& head, const Asked& asked) : head_(head), asked_(asked) {}

    int run(Step step, int32_t* rows, double* seconds) {
        likely_.assign(step.num_spans, 1.0f);
        for (int span = 0; span < step.num_spans; ++span) {
            asked_.counts[span] = 0;
            const int last = step.span_starts[span + 1] - 1;
            if (asked_.num_drafts[span] > 0) going_.push_back({span, last, step.positions[last]});
        }
        for (int round = 0;; ++round) {
            const auto began = std::chrono::steady_clock::now();
            compute(step);
            rows[round] = step.num_rows;
            seconds[round] = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
            if (going_.empty()) return round + 1;
            step = next();
        }
    }

 private:
    struct Going {  // a span that guesses: behind which row, and where that stands
        int32_t span, row, position;
    };

    Runner& head_;
    const Asked asked_;
    std::vector<float> likely_;  // of each span: that all its drafts are right
    std::vector<Going> going_;
    std::vector<int32_t> outputs_, best_;
    std::vector<float> heats_;
    // Of the next step; its rows' own are `given_`.
    std::vector<int32_t> tokens_, positions_, starts_, blocks_, tables_;
    std::vector<float> given_;

    // Computes a step, and takes the guesses that are likely enough; the spans that are done leave.
    void compute(Step& step) {
        outputs_.clear(), heats_.clear();
        for (const Going& each : going_) {
            outputs_.push_back(each.row);
            heats_.push_back(asked_.heats[each.span]);
        }
        best_.resize(going_.size());
        step.output_rows = outputs_.data();
        step.num_outputs = static_cast<int>(outputs_.size());
        step.heats = heats_.data();
        head_.run(step, best_.data());
        take();
    }

    void take() {
        const std::vector<Going> guessing = std::move(going_);
        const int stride = head_.model().hidden_stride;
        going_.clear(), tokens_.clear(), positions_.clear(), given_.clear();
        for (size_t i = 0; i < guessing.size(); ++i) {
            const int span = guessing[i].span, position = guessing[i].position + 1;
            likely_[span] *= head_.confidence(static_cast<int>(i));
            if (likely_[span] < asked_.least[span]) continue;
            const int token = asked_.ids[best_[i]];
            asked_.drafts[span * asked_.most + asked_.counts[span]++] = token;
            if (asked_.counts[span] == asked_.num_drafts[span] || likely_[span] < asked_.going[span]) continue;
            const float* row = head_.hidden_of(guessing[i].row);
            given_.insert(given_.end(), row, row + stride);
            tokens_.push_back(token);
            positions_.push_back(position);
            going_.push_back({span, static_cast<int32_t>(going_.size()), position});
        }
    }

    // The step that computes the guesses just made, a row for each span.
    Step next() {
        const int count = static_cast<int>(going_.size());
        starts_.assign(1, 0), tables_.assign(1, 0), blocks_.clear();
        for (const Going& each : going_) {
            starts_.push_back(static_cast<int32_t>(starts_.size()));
            blocks_.insert(blocks_.end(), asked_.block_ids + asked_.table_starts[each.span],
                           asked_.block_ids + asked_.table_starts[each.span + 1]);
            tables_.push_back(static_cast<int32_t>(blocks_.size()));
        }
        Step step{};
        step.tokens = tokens_.data();
        step.positions = positions_.data();
        step.num_rows = step.num_spans = count;
        step.span_starts = starts_.data();
        step.block_ids = blocks_.data();
        step.table_starts = tables_.data();
        step.given = given_.data();
        return step;
    }
};

}  // namespace
}  // namespace axon

// Drafts by a head behind spans of tokens, as many as each asks for, and no more than are likelier than `least` to be right
// together; behind less than `going` no more are guessed. What is likely, heats say, by which logits are multiplied. Takes
// the rows of axon_step. Rows and seconds are those of each round, of which there are `most` at most, and one at least.
// Returns their number, or -1 when memory is short.
extern "C" __attribute__((visibility("default"))) int axon_draft(
    axon::Runner* head, const int32_t* tokens, const int32_t* positions, int num_rows, const int32_t* span_starts,
    int num_spans, const int32_t* block_ids, const int32_t* table_starts, const int32_t* num_drafts, const float* heats,
    const float* least, const float* going, const int32_t* ids, int most, int32_t* drafts, int32_t* counts, int32_t* rows, double* seconds) {
    axon::Step step{};
    step.tokens = tokens;
    step.positions = positions;
    step.num_rows = num_rows;
    step.span_starts = span_starts;
    step.num_spans = num_spans;
    step.block_ids = block_ids;
    step.table_starts = table_starts;
    try {
        return axon::Drafting(*head, {block_ids, table_starts, num_drafts, heats, least, going, ids, most, drafts,
                                     counts})
            .run(step, rows, seconds);
    } catch (const std::bad_alloc&) {
        return -1;
    }
}
