// Package doctor examines a cluster before jobs run on it: key, limits and quotas, whether the image runs, what a
// container finds and reaches, how many containers run at once, and how actions end that use too much.
//
// It runs its own actions, called probes, and removes them afterwards. Each Finding tells what it means for jobs and,
// if an admin can change it, by which setting. It never invokes an action that could wait forever: it tries a memory
// only if that much has run at once on one machine, because an action larger than an invoker's pool blocks it for
// everybody. Invariant: after a check that makes the others impossible there are no more checks.
package doctor
