// Package export writes jobs and models for other programs: tables, event files of TensorBoard, folders of MLflow,
// files of MLLess, and ONNX. It also reads models of ONNX.
//
// It reads records and weights, decides nothing, and overwrites nothing. It writes the protobuf of ONNX itself
// (github.com/onnx/onnx/blob/main/docs/IR.md, opset 13), because a graph needs few messages, and weights then go to the
// file without a copy.
package export
