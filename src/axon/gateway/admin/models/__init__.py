"""Admin routes of models: registry, deployments, rollouts, aliases, prices, adapters."""
