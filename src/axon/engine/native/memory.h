// Memory of a model and its steps: mapped pages, and aligned pieces of them. Knows no model.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

namespace axon {

// Zeros, mapped on first touch, on large pages where the system has them.
class Memory {
 public:
    explicit Memory(size_t size) : size_(std::max(size, size_t{1})) {
        void* start = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (start == MAP_FAILED) throw std::bad_alloc();
        start_ = start;
        madvise(start_, size_, MADV_HUGEPAGE);
    }
    ~Memory() { munmap(start_, size_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    template <class T>
    T* as() const { return static_cast<T*>(start_); }

 private:
    size_t size_;
    void* start_;
};

// Hands out aligned pieces of one allocation: asked twice, first to learn the size, then for the pieces.
class Carver {
 public:
    explicit Carver(uint8_t* start) : start_(start) {}

    template <class T>
    T* take(size_t count) {
        T* piece = start_ ? reinterpret_cast<T*>(start_ + used_) : nullptr;
        used_ += (count * sizeof(T) + 63) / 64 * 64;
        return piece;
    }

    size_t used() const { return used_; }

 private:
    uint8_t* start_;
    size_t used_ = 0;
};

}  // namespace axon
