// Package export writes jobs and models as other programs read them: tables, the event files of TensorBoard, the folders
// of MLflow, the files of MLLess, and ONNX.
//
// It reads records and weights, decides nothing, and overwrites nothing. It writes the protobuf of ONNX itself
// (github.com/onnx/onnx/blob/main/docs/IR.md, opset 13), because a graph takes few messages and weights then go to the
// file without a copy.
package export
