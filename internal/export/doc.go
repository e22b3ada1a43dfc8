// Package export writes jobs as other programs read them: tables, TensorBoard's event files, and the folders of MLflow.
//
// It reads records, decides nothing, and overwrites nothing.
package export
