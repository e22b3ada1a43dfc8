// Package runtime is the action runtime: the HTTP server that OpenWhisk's invoker talks to inside a container, with
// /init once and /run for every activation, as its documentation of actions and the invoker's sources have it. Import
// it as owruntime.
//
// It knows nothing of training: handlers come from outside, one for each task, and the main of /init chooses among
// them. Work runs in the process that serves, so that a kill for memory is the container's own, and a watch on resident
// memory answers with a structured error before it comes to that. It refuses a second /init, a /run before /init and a
// second /run at the same time. Invariant: every answer has a Content-Length, and every activation ends both streams
// with the sentinel.
package runtime
