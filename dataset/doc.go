// Package dataset has data to learn from: readers of common file formats, data sets stored as chunks on a blob URL,
// and the shards of workers.
//
// A data set is a manifest and chunks in safetensors. The manifest has every chunk with its checksum and is written
// last, so that a data set exists completely or not at all. Readers refuse damaged files with a located error and
// never allocate by an unchecked number. The command line adds data sets, the controller reads manifests, actions
// read shards.
package dataset
