// Command estimator runs a suite of jobs on the embedded platform, each at the limits that the planner chose. It
// compares the estimates with the peaks that the kernel counted. It prints lines of the form
//
//	figure NAME VALUE UNIT
//
// Training is cut down to a batch or a few, on synthetic rows of the right shape: a step takes the memory of every
// other.
//
// Its other parts are generated (the same with jobs drawn from a seed), timeouts, forecasts, and the headline. timeouts
// compares timeouts and forecasts from the history with the real times of jobs. forecasts does that beside other
// programs' load. The headline runs the same twenty jobs at OpenWhisk's default limits, with fixed-step retries, and
// with disdel. It judges nothing.
package main
