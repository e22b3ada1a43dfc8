// Package doctor examines a cluster before a job is sent there: whether the key is taken, what its limits and quotas
// are, whether the image runs, what a container finds and reaches, how many run at once, and how actions are ended that
// take too much.
//
// It finds out by actions of its own, probes, which look at their container and go; what it made is gone afterwards.
// Each Finding says what it means for jobs and, where an admin can mend it, by which key and value. It never invokes an
// action that might wait for ever: a memory is tried only where as much has run at once on one machine, since an action
// larger than the pool of an invoker blocks that for everybody. Invariant: after the first check that leaves nothing to
// continue with there are no further ones.
package doctor
