"""Kernels of LSTM, GRU and SimpleRNN: cells, and the weighted sums of their gates."""
