// Package gpu writes what an OpenWhisk needs whose invokers' machines have GPUs: pod template, configuration, and what
// the cluster around it has to have. OpenWhisk counts memory and knows no GPUs, so that the pool has to divide them: it
// is made so large that as many train actions fit it as share the machine's GPUs.
//
// There are three routes, none of which has been tried: see Route. It asks no cluster, and refuses what cannot be
// divided. Invariant: with what it writes no more train actions of the size that it was told run on a machine than its
// GPUs hold.
package gpu
