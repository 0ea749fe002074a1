"""The gRPC API of Axon, version 1: ``axon.proto``, and the code that ``make proto`` generates from it."""
