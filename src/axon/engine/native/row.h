// The scores of one row that tokens are chosen from, with the largest of each block. Knows no request.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "sampler.h"

namespace axon {

constexpr float kHighest = std::numeric_limits<float>::infinity();
constexpr float kLowest = -kHighest;

class Row {
 public:
    Row(const Passes& passes, int vocab)
        : passes(passes), vocab(vocab), num_blocks((vocab + kBlock - 1) / kBlock), tops(num_blocks) {}

    const Passes& passes;
    const int vocab, num_blocks;
    std::vector<float> tops;
    float* scores = nullptr;
    float peak = 0;

    void look_at(float* row) {
        scores = row;
        find_tops();
        find_peak();
    }

    void find_tops() { passes.tops(scores, vocab, tops.data()); }

    void find_peak() {
        peak = kLowest;
        for (float& top : tops) {
            if (!(top >= kLowest)) top = kLowest;  // what is no number cannot be ordered
            peak = std::max(peak, top);
        }
    }

    // The peak is to be found again afterwards.
    void set(int id, float score) {
        const int block = id / kBlock;
        const bool was_top = scores[id] >= tops[block];
        scores[id] = score;
        if (score >= tops[block])
            tops[block] = score;
        else if (was_top)
            passes.tops(scores + block * kBlock, end_of(block) - block * kBlock, &tops[block]);
    }

    int end_of(int block) const { return std::min(vocab, (block + 1) * kBlock); }

    // The lowest id among equals.
    int likeliest() const {
        for (int block = 0; block < num_blocks; ++block)
            if (tops[block] == peak)
                for (int id = block * kBlock; id < end_of(block); ++id)
                    if (scores[id] == peak) return id;
        return 0;  // only where the scores are no numbers
    }

    // The token's rank, from 1: the highest score first, the lowest id among equals.
    int rank_of(int token) const {
        int rank = 1;
        for (int id = 0; id < token; ++id) rank += scores[id] >= scores[token];
        for (int id = token + 1; id < vocab; ++id) rank += scores[id] > scores[token];
        return rank;
    }

    // A score that at least `count` tokens reach, and not many more: as many blocks have a top from it on.
    float threshold(int count) const {
        constexpr int kRounds = 16;
        float lowest = peak, above = peak;
        for (float top : tops) lowest = top > kLowest ? std::min(lowest, top) : lowest;
        if (num_tops_from(lowest) < count) return kLowest;
        for (int round = 0; round < kRounds; ++round) {
            const float middle = 0.5f * lowest + 0.5f * above;
            const int num_tops = num_tops_from(middle);
            if (num_tops < count) {
                above = middle;
            } else {
                lowest = middle;
                if (num_tops <= count + count / 4) break;
            }
        }
        return lowest;
    }

 private:
    int num_tops_from(float lowest) const {
        int count = 0;
        for (float top : tops) count += top >= lowest;
        return count;
    }
};

}  // namespace axon
