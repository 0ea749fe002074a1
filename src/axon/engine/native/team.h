// Threads that run one function together and wait for each other. They spin for moments and sleep beyond.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <thread>
#include <vector>

namespace axon {

// A number that threads wait on until it changes. Whoever changes it wakes only those that really sleep.
class Signal {
 public:
    uint32_t read() const { return value_.load(std::memory_order_acquire); }

    void change() {
        value_.fetch_add(1);
        if (sleepers_.load() > 0) futex(FUTEX_WAKE_PRIVATE, INT_MAX);
    }

    void wait_while(uint32_t seen, int spins) {
        for (int i = 0; i < spins; ++i) {
            if (read() != seen) return;
            relax();
        }
        sleepers_.fetch_add(1);
        while (read() == seen) futex(FUTEX_WAIT_PRIVATE, seen);
        sleepers_.fetch_sub(1);
    }

 private:
    alignas(64) std::atomic<uint32_t> value_{0};
    alignas(64) std::atomic<uint32_t> sleepers_{0};

    void futex(int operation, uint32_t argument) {
        syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), operation, argument, nullptr, nullptr, 0);
    }

    static void relax() {
#if defined(__aarch64__)
        asm volatile("isb" ::: "memory");  // "yield" does nothing here; this one waits for some 10 ns
#elif defined(__x86_64__)
        asm volatile("pause" ::: "memory");
#endif
    }
};

class Team {
 public:
    using Task = void (*)(void* argument, int thread);

    explicit Team(int num_threads) : num_threads_(num_threads) {
        for (int thread = 1; thread < num_threads; ++thread) threads_.emplace_back([this, thread] { work(thread); });
    }

    ~Team() {
        task_ = nullptr;
        start_.change();
        for (std::thread& thread : threads_) thread.join();
    }

    int size() const { return num_threads_; }

    // Runs the task in every thread, this one included; returns when all have ended.
    void run(Task task, void* argument) {
        task_ = task;
        argument_ = argument;
        start_.change();
        task(argument, 0);
        meet();
    }

    // Returns when every thread has come here.
    void meet() {
        if (num_threads_ == 1) return;
        const uint32_t round = met_.read();
        if (arrived_.fetch_add(1) + 1 == num_threads_) {
            arrived_.store(0);
            met_.change();
        } else {
            met_.wait_while(round, kMeetingSpins);
        }
    }

 private:
    // About 30 and 150 microseconds: a meeting is soon over unless the other thread lost its core, and between steps
    // a worker stays awake just long enough for the next one to be prepared.
    static constexpr int kMeetingSpins = 2000;
    static constexpr int kIdleSpins = 10000;

    const int num_threads_;
    Signal start_;
    Signal met_;
    alignas(64) std::atomic<int> arrived_{0};
    Task task_ = nullptr;
    void* argument_ = nullptr;
    std::vector<std::thread> threads_;

    void work(int thread) {
        uint32_t seen = 0;
        for (;;) {
            start_.wait_while(seen, kIdleSpins);
            ++seen;  // starts are never missed: the next one comes only after everyone met at the end of this one
            const Task task = task_;
            if (!task) return;
            task(argument_, thread);
            meet();
        }
    }
};

}  // namespace axon
