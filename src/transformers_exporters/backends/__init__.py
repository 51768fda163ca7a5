"""One folder a backend: its config, its export door (lower), its run door (run) and its own workarounds."""
