"""Lets the launcher start the tools by their folder: python lab COMMAND."""

from hmalloc_lab.cli import main

main()
