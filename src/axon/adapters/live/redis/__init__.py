"""The live ports on Redis: each port's commands and scripts, and the one client they share."""
