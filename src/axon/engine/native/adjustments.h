// Changes the scores of a row as its request asks: bias, penalties, bans, a grammar's mask; and takes the changes back.
#pragma once

#include <vector>

#include "row.h"

namespace axon {

class Adjustments {
 public:
    explicit Adjustments(Row& row) : row_(row), counts_(row.vocab) {}

    // Takes the memory that the changes need.
    void reserve(const Request& request) {
        changes_.reserve(request.num_biases + request.num_banned + static_cast<size_t>(3) * row_.vocab);
    }

    // Returns whether anything changed. A row must keep a token: if none is left, the bans are lifted, and if none is
    // then, the mask.
    bool apply(const Request& request, const int32_t* ids, const double* biases) {
        for (int lifted = 0; lifted < 3; ++lifted) {
            add_biases(ids, request.num_biases, biases);
            penalise(ids + request.num_biases, request);
            if (lifted < 1) ban(ids + request.num_biases + request.num_prompt + request.num_output, request.num_banned);
            if (request.mask && lifted < 2) apply_mask(request.mask);
            if (changes_.empty()) return false;
            row_.find_peak();
            if (row_.peak > kLowest) break;
            undo();
            row_.look_at(row_.scores);
        }
        return true;
    }

    // Leaves the row's tops as they are. The latest change first, because a score may have changed twice.
    void undo() {
        for (; !changes_.empty(); changes_.pop_back()) row_.scores[changes_.back().id] = changes_.back().before;
    }

 private:
    struct Change {
        int32_t id;
        float before;
    };

    Row& row_;
    std::vector<int32_t> counts_;  // of a request's tokens; zeros between requests
    std::vector<Change> changes_;

    void change(int32_t id, double score) {
        changes_.push_back({id, row_.scores[id]});
        row_.set(id, static_cast<float>(score));
    }

    bool is_token(int32_t id) const { return id >= 0 && id < row_.vocab; }

    void add_biases(const int32_t* ids, int count, const double* biases) {
        for (int i = 0; i < count; ++i)
            if (is_token(ids[i])) change(ids[i], row_.scores[ids[i]] + biases[i]);
    }

    // `ids` are those of the prompt, then those of the output.
    void penalise(const int32_t* ids, const Request& request) {
        if (request.repetition_penalty != 1) {
            change_each(ids, request.num_prompt + request.num_output, [&](float score, int) {
                return score > 0 ? score / request.repetition_penalty : score * request.repetition_penalty;
            });
        }
        if (request.presence_penalty != 0 || request.frequency_penalty != 0) {
            change_each(ids + request.num_prompt, request.num_output, [&](float score, int count) {
                return score - (request.frequency_penalty * count + request.presence_penalty);
            });
        }
    }

    // Changes the score of each distinct id to changed(score, how often it occurs).
    template <class Changed>
    void change_each(const int32_t* ids, int num_ids, Changed changed) {
        for (int i = 0; i < num_ids; ++i)
            if (is_token(ids[i])) ++counts_[ids[i]];
        for (int i = 0; i < num_ids; ++i) {
            if (!is_token(ids[i]) || !counts_[ids[i]]) continue;
            change(ids[i], changed(row_.scores[ids[i]], counts_[ids[i]]));
            counts_[ids[i]] = 0;
        }
    }

    void apply_mask(const uint32_t* mask) {
        for (int first = 0; first < row_.vocab; first += 32) {
            const uint32_t allowed = mask[first / 32];
            if (allowed == ~0u) continue;
            for (int id = first; id < std::min(first + 32, row_.vocab); ++id) {
                if (allowed >> (id - first) & 1) continue;
                changes_.push_back({id, row_.scores[id]});
                row_.scores[id] = kLowest;
            }
        }
        row_.find_tops();
    }

    void ban(const int32_t* ids, int count) {
        for (int i = 0; i < count; ++i)
            if (is_token(ids[i])) change(ids[i], kLowest);
    }
};

}  // namespace axon
