"""Who goes next: lanes, shares of slots and counters of what each tenant was served."""
