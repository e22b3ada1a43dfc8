// Package checkup measures what the engine's kernels reach on this machine: multiply-adds on registers, a large matrix
// product, and convolutions. It also measures each chosen block beside its alternatives. So a wrong row of the table
// shows, and a processor that the table lacks. `disdel doctor engine` prints it.
//
// It changes nothing: DISDEL_BLOCKS and DISDEL_KERNELS do. What it measures is of one core that others may be using,
// and good for some percent.
package checkup
