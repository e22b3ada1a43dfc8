// Command estimator runs a suite of jobs on the embedded platform, each at the limits that the planner chose from its
// estimate, and compares estimates with the peaks that the kernel counted. It prints lines of the form
//
//	figure NAME VALUE UNIT
//
// Training is cut down to a batch or a few, on synthetic rows of the right shape: a step takes the memory of every
// other.
//
// Its other parts are generated, the same of jobs drawn from a seed; timeouts, which compares the timeouts and
// forecasts that history makes with what jobs take; forecasts, the same beside other programs' load; and the headline:
// the same twenty jobs at OpenWhisk's default limits, with fixed-step retries, and with disdel. It judges nothing.
package main
