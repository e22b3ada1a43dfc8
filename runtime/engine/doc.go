// Package engine computes with a network: steps of training, evaluation and prediction on batches of samples.
//
// This first engine executes a model graph as a gorgonia expression graph. Convolution, dense layers, ReLU and max pooling
// are operations of our own, which compute into buffers they keep; the rest is gorgonia's. Its interface
// is the one that an engine with a static memory plan keeps: weights in and out in PyTorch's names and layouts, a step on
// one batch, nothing about gorgonia. What gorgonia does wrongly or not at all (batch norm's running statistics, average
// pools, grouped convolution) is refused by New with the layer's name.
//
// Actions call it, one goroutine at a time. Invariant: the same graph, weights and batches give the same bits.
package engine
