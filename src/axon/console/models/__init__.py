"""Commands for models, deployments, rollouts, aliases and prices."""
