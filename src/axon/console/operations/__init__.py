"""Commands that look at a running fleet, or plan one."""
