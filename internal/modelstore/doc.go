// Package modelstore keeps trained models on a blob URL. Weights are safetensors at weights/NAME/JOB.safetensors, written
// by the job's top aggregation action; a model exists from the moment its description is written to
// models/NAME/vNNNNN.json, which is done once and never changed, so that nobody sees half a model.
//
// Actions write and read weights; cmd/disdel commits, lists and prunes.
package modelstore
