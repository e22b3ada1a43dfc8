// Package dataset is what a network learns from: readers of the usual files, data sets kept as chunks on a blob URL,
// and the shards that workers get.
//
// A data set is a manifest and chunks in safetensors. The manifest names every chunk with its checksum and is written
// last, so that a data set is there wholly or not at all. Readers refuse damaged files with a located error and never
// allocate by a number they have not checked. The command line adds data sets, the controller reads manifests, actions
// read shards.
package dataset
