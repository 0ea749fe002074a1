"""How published checkpoints keep matrices in eight or four bits: where the tensors lie, and how they are unpacked."""
