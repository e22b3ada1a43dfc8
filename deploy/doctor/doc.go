// Package doctor examines a cluster before jobs run on it. It checks key, limits and quotas, the image, and what a
// container finds and reaches. It also checks how many containers run at once, and how actions end that use too much.
//
// It runs its own actions, called probes, and removes them afterwards. Each Finding tells what it means for jobs and,
// if an admin can change it, by which setting. It never invokes an action that could wait forever, because an action
// larger than an invoker's pool blocks it for everybody. So it tries a memory only if that much has run at once on one
// machine. Invariant: after a check that makes the others impossible there are no more checks.
package doctor
