// Package device is the driver of NVIDIA's GPUs, through gorgonia.org/cu: contexts, memory, modules, streams and
// launches are cu's; what cu has not (graphs of a stream, pinned memory, an initialisation that may fail) is a few
// calls of our own. It is built with the tag nvidia alone, by make cuda, and needs C, CUDA's headers and the library
// that scripts/cuda-deps.sh makes.
//
// That library stands for libcuda.so.1, which comes with a machine's driver and is opened when a device is asked for:
// so a program with this package starts on machines without a GPU, too, and Devices says what is missing.
//
// A program of launches is captured as one CUDA graph. What is written ahead goes by a second stream, from pinned
// memory, beside the program that runs; the next one waits for it by an event. Errors are driver.Faults. Invariant:
// every call sets the context of its own device on its thread, so that an engine may be used by one goroutine after
// another.
package device
