"""The laboratory: what is measured (catalogue), on whom (participants), how (campaign, trial, os_noise), where it is kept
(store), and what it says (results, statistics, summary, compare).  The pictures are in ../page."""
