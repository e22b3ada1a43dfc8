// Package simulate runs jobs in virtual time: scheduler.NewPlan plans them, scheduler.Admission admits them, and each
// has the controller's own manager, which is told what becomes of its invocations in a scheduler/sim cloud. Nothing
// that decides is written a second time; only activations are simulated.
//
// It knows no clock of the machine, no I/O and no goroutine: equal traces come to equal results. It refuses a job that
// the planner or admission refuse, and continues with the others. The service calls it for disdel simulate, and
// bench/tenants for its figures.
package simulate
