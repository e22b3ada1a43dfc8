// Package modelstore keeps trained models on a blob URL. Weights are safetensors at weights/NAME/JOB.safetensors,
// written by the job's top aggregation action; a model exists from the moment its description is written to
// models/NAME/vNNNNN.json. That is done once, so that nobody sees half a model, and again only to add what an
// evaluation found out later.
//
// Actions write and read weights; cmd/disdel commits, lists and prunes.
package modelstore
