"""Patches for recurrences over the sequence: state-space models, linear attention, RWKV, xLSTM."""
