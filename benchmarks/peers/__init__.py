"""The engines Axon is compared with: how each is installed, started and asked. None of them is imported here."""
