// Package simulate runs jobs in virtual time: scheduler.NewPlan plans them, scheduler.Admission admits them, and each
// has the controller's own manager, which gets the results of its invocations in a scheduler/sim cloud. All decisions
// are made by the product's own code; only activations are simulated.
//
// The package has no clock of the machine, no I/O and no goroutine: equal traces give equal results. It refuses a job
// that the planner or admission refuse, and continues with the others. The service calls it for disdel simulate, and
// bench/tenants for its figures.
package simulate
