// Package checkup measures what the engine's kernels reach on this machine: multiply-adds on registers, a large matrix
// product, convolutions, and each block that was chosen beside those that could have been, so that a wrong row of the
// table, or a processor that it lacks, shows. `disdel doctor engine` prints it.
//
// It changes nothing: DISDEL_BLOCKS and DISDEL_KERNELS do. What it measures is of one core that others may be using,
// and good for some percent.
package checkup
