"""One model over several processes, each with a part of every layer: tensor parallelism."""
