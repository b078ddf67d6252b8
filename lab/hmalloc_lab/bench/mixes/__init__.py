"""Production mixes, drawn by lot for each campaign, so that no allocator is tuned to one."""
