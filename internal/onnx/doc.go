// Package onnx writes a trained network as ONNX, which other programs run: one graph of an input "input" of rows of
// samples and an output "output", with the weights in it.
//
// It writes the protobuf itself: the handful of messages that a graph takes is smaller than any library for them, and
// weights go from where they are to the file without a copy. It refuses what only an action's own binary computes, and
// models of sparse rows.
//
// The format: github.com/onnx/onnx/blob/main/docs/IR.md; field numbers are those of onnx.proto there. Operators are
// those of opset 13, which every runtime of the last years knows.
package onnx
