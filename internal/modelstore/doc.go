// Package modelstore keeps trained models at a blob URL. The job's top aggregate action writes the weights to
// weights/NAME/JOB.safetensors. A model exists once its description is at models/NAME/vNNNNN.json; it is written after
// the weights, so that nobody sees half a model. A later evaluation may replace it.
//
// Actions write and read weights; services commit, list and prune models.
package modelstore
