// Package platform is an OpenWhisk in this process: its REST API, a container pool with OpenWhisk's accounting, and
// containers that are child processes under an enforced memory limit and timeout. Texts, status codes and records are
// OpenWhisk's own, so that what works here works on a cluster. All state is in one bbolt file, which survives a restart
// where Config.DataDir says so.
//
// It refuses what OpenWhisk refuses, with its words. cmd/disdel starts one for people without a cluster; tests run
// against it. Invariant: after Close no child process, socket or folder of it is left; a container and what it started
// die with the platform even when the platform is killed. (Without control groups, a process that left its container's
// process group is out of reach.) Processes that the platform starts, and others that its process starts after them,
// inherit no descriptor but those that Go hands them.
//
// Terms: a seat is the place of an activation in a container, which several activations may share. The fence of a
// container is the memory limit around its process. A container is opening until its /init has answered.
package platform
