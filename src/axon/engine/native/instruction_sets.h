// The arithmetic compiled for each instruction set, of which the best one here is chosen at run time.
#pragma once

#include "encoder.h"
#include "model.h"

namespace axon {

struct InstructionSet {
    const char* name;
    StepFunction step;
    EncodeFunction encode;
    bool (*is_here)();
};

// The one of this name ("" for the best), or null.
const InstructionSet* find(const char* name);

}  // namespace axon
