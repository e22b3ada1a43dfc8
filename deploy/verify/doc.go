// Package verify tries what jobs rely on against whatever cluster it is pointed at: the protocol, limits, how actions
// are ended for memory or time, throttling, a container that is lost, a small job, and a job whose controller is
// killed.
//
// Cases are graded: what no job can do without is core, what makes jobs survive is full. One that cannot be tried on a
// cluster is skipped, and says why. Actions that it made are gone afterwards; the records of its jobs and the model
// disdel-verify stay, as those of any job. It is a caller of service like any other.
package verify
