"""A prepared component becomes a traced program with named axes."""
