"""`python -m transformers_exporters.cli`: what the demo's child processes are started with."""

from . import main

main()
