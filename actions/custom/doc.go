// Package custom makes an action of a user's own network. A program whose main is
//
//	os.Exit(custom.Main(gorgonia.Network{Name: "mine", Sample: []int{1, 8, 8}, Classes: 10, Build: build}))
//
// is such an action: run with the argument describe it prints what the controller must know of the network, and run
// with the argument runtime it serves /init and /run as `disdel runtime` does. `disdel submit --action FILE` starts it
// in the place of the standard runtime; on a cluster it is the entry point of the action's image. examples/gorgonia is
// one.
//
// Such a program can carry out every task of a job, and train networks of the zoo as well. Invariant: whatever the
// arguments, nothing but describe writes to standard output.
package custom
