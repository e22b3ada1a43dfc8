// Package platform is an embedded OpenWhisk: its REST API, a container pool with OpenWhisk's accounting, and containers
// that are child processes with a memory limit and a timeout. Texts, status codes and records are OpenWhisk's own, so
// what works here works on a cluster. All state is in one bbolt file; Config.DataDir keeps it across restarts.
//
// The platform refuses what OpenWhisk refuses, with the same texts (statuses.go). cmd/disdel starts one for people
// without a cluster, and tests run against it.
//
// Terms: a slot is the place of an activation in a container, which several activations may share. The limit of a
// container is the memory limit around its process.
//
// Invariant: after Close no child process, socket or folder is left. Containers and what they started die with the
// platform, even if the platform is killed. Without control groups, a process that left its container's process group
// survives. Child processes inherit no descriptors except those that Go passes on.
package platform
