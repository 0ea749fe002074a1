"""vLLM as an engine: the same protocol as Axon's own engine, spoken by a process in vLLM's own environment.

The process is ``axon.engine.process``, run by the interpreter that ``engine.vllm_python`` names. Of Axon it imports
this room, the protocol and what they stand on, which need msgspec alone; vLLM brings that.

What this engine cannot promise, and Axon's own does:

- **Bitwise replay.** vLLM's random numbers are a stream of a generator, not keyed by position, and its arithmetic
  depends on the batch. After a failover an answer goes on from the tokens that were emitted, with numbers of its own.
- **Shares of each step.** vLLM schedules its steps itself. Fairness is kept at the door: what waits is handed in by
  the fair order, as many sequences as there are slots; what runs is never parked for another tenant.
- **A tenant's share of the KV blocks** (``kv_share``).
- **Copies of blocks outside the device, draft models of the worker's, LoRA adapters, vectors.** Adapters and models
  that give vectors are refused.
- **A presence penalty after a failover**: a token that stands in the answer before and behind it is penalised twice.
"""
