// The ranking of a row's tokens, the highest score first and the lowest id among equals: its first tokens, and where it
// is cut. Never sorts more than it must. Knows no request.
#pragma once

#include <climits>
#include <cmath>
#include <memory>

#include "row.h"

namespace axon {

constexpr Cut kNoCut = {kLowest, INT_MAX};

inline bool stays(float score, int id, Cut cut) { return score > cut.score || (score == cut.score && id <= cut.id); }

inline Cut stricter(Cut a, Cut b) { return stays(a.score, a.id, b) ? a : b; }

struct Candidate {
    float score;
    float weight;
    int32_t id;
};

class Ranking {
 public:
    explicit Ranking(const Row& row)
        : row_(row), some_scores_(new float[row.vocab]), some_weights_(new float[row.vocab]),
          candidates_(new Candidate[row.vocab]), upper_(new Candidate[row.vocab]), lower_(new Candidate[row.vocab]) {}

    // The first `count` tokens, which becomes less where there are fewer.
    const Candidate* first(int& count) {
        gather(row_.threshold(count), kHighest);
        sort();
        count = std::min(count, num_candidates_);
        return candidates_.get();
    }

    Cut cut_at_count(int count) {
        gather(row_.threshold(count), kHighest);
        for (int i = 0; i < num_candidates_; ++i) candidates_[i].weight = 1;
        return find_cut(0, count);
    }

    // The token at which the mass is reached; most rows have it among their first few hundred tokens.
    Cut cut_at_mass(double mass, Softmax softmax) {
        float below = kHighest;
        double cumulated = 0;  // over the scores that are not below
        for (int at_least : {32, 256}) {
            if (at_least > row_.num_blocks) break;
            const float lowest = row_.threshold(at_least);
            const double more = gather_weighed(lowest, below, softmax);
            if (cumulated + more >= mass) return find_cut(cumulated, mass);
            cumulated += more;
            below = lowest;
        }
        return cut_wide(mass, softmax, below, cumulated);
    }

 private:
    const Row& row_;
    std::unique_ptr<float[]> some_scores_, some_weights_;
    std::unique_ptr<Candidate[]> candidates_, upper_, lower_;
    int num_candidates_ = 0, num_upper_ = 0;

    // The same in a row that is nearly flat: bisects its scores until the range left holds few tokens.
    Cut cut_wide(double mass, Softmax softmax, float below, double cumulated) {
        constexpr int kRounds = 10;
        float lowest = softmax.peak - 53 / softmax.inverse;
        below = std::min(below, std::nextafter(softmax.peak, kHighest));
        row_.passes.weigh(row_.scores, row_.vocab, softmax, some_weights_.get());
        for (int round = 0; round < kRounds; ++round) {
            const float middle = 0.5f * lowest + 0.5f * below;
            if (!(lowest < middle && middle < below)) break;
            const double sum = row_.passes.sum_from(row_.scores, some_weights_.get(), row_.vocab, middle);
            if (sum >= mass) {
                lowest = middle;
            } else {
                below = middle;
                cumulated = sum;
            }
        }
        gather_weighed(lowest, below, softmax);
        return find_cut(cumulated, mass);
    }

    // Puts the tokens with scores from `lowest` on and below `below` into candidates_, in the order of their ids. One
    // that does not belong there is overwritten by the next: a branch on every score would take longer.
    void gather(float lowest, float below) {
        const float highest = below == kHighest ? below : std::nextafter(below, kLowest);
        const float* scores = row_.scores;
        Candidate* to = candidates_.get();
        for (int block = 0; block < row_.num_blocks; ++block) {
            if (!(row_.tops[block] >= lowest)) continue;
            for (int id = block * kBlock, end = row_.end_of(block); id < end; ++id) {
                const float score = scores[id];
                *to = {score, 0, id};
                to += (score >= lowest) & (score <= highest);
            }
        }
        num_candidates_ = static_cast<int>(to - candidates_.get());
    }

    // The same with their weights, whose sum it returns.
    double gather_weighed(float lowest, float below, Softmax softmax) {
        gather(lowest, below);
        for (int i = 0; i < num_candidates_; ++i) some_scores_[i] = candidates_[i].score;
        row_.passes.weigh(some_scores_.get(), num_candidates_, softmax, some_weights_.get());
        double total = 0;
        for (int i = 0; i < num_candidates_; ++i) total += candidates_[i].weight = some_weights_[i];
        return total;
    }

    // The candidate at which the weights, cumulated in the order of the ranking, reach `needed`; the last if none does.
    // Quickselect: halves the range of scores until few are left to sort.
    Cut find_cut(double cumulated, double needed) {
        constexpr int kFew = 32, kMostRounds = 64;
        for (int round = 0; num_candidates_ > kFew && round < kMostRounds; ++round) {
            const float middle = middle_score();
            if (middle == kLowest) break;
            const double mass = split(middle);
            const bool is_above = cumulated + mass >= needed;
            if (!is_above) cumulated += mass;
            num_candidates_ = is_above ? num_upper_ : num_candidates_ - num_upper_;
            candidates_.swap(is_above ? upper_ : lower_);
        }
        sort();
        for (int i = 0; i < num_candidates_; ++i) {
            cumulated += candidates_[i].weight;
            if (cumulated >= needed || i + 1 == num_candidates_) return {candidates_[i].score, candidates_[i].id};
        }
        return kNoCut;
    }

    // Copies the candidates above the middle into upper_ and the others into lower_; returns the weight of the former.
    double split(float middle) {
        Candidate *upper = upper_.get(), *lower = lower_.get();
        double mass = 0;
        for (const Candidate *at = candidates_.get(), *end = at + num_candidates_; at < end; ++at) {
            const bool is_above = at->score > middle;
            *upper = *at;
            *lower = *at;
            upper += is_above;
            lower += !is_above;
            mass += is_above ? at->weight : 0.0f;
        }
        num_upper_ = static_cast<int>(upper - upper_.get());
        return mass;
    }

    // A score that some candidates are above and some are not; -inf if all are equal.
    float middle_score() const {
        float least = candidates_[0].score, most = least;
        for (int i = 1; i < num_candidates_; ++i) {
            least = std::min(least, candidates_[i].score);
            most = std::max(most, candidates_[i].score);
        }
        if (!(least < most)) return kLowest;
        const float middle = 0.5f * least + 0.5f * most;
        return middle > least && middle < most ? middle : std::max(least, -std::numeric_limits<float>::max());
    }

    // Into the order of the ranking; equals are in it already.
    void sort() {
        const auto is_before = [](const Candidate& a, const Candidate& b) {
            return a.score > b.score || (a.score == b.score && a.id < b.id);
        };
        Candidate* const end = candidates_.get() + num_candidates_;
        if (!std::is_sorted(candidates_.get(), end, is_before)) std::sort(candidates_.get(), end, is_before);
    }
};

}  // namespace axon
