"""`nn.LSTM`, `nn.GRU` and `nn.RNN` over any number of steps: see `trace.recurrences.recurrent_shapes`."""

from ....trace.recurrences.recurrent_shapes import recurrent_shapes

WORKAROUND = recurrent_shapes()
