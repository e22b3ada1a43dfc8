// Package runtime is the action runtime: the HTTP server that OpenWhisk's invoker talks to inside a container. It
// serves /init once and /run for every activation, as OpenWhisk's documentation of actions and the invoker's sources
// say. Import it as owruntime.
//
// It does not depend on training: its caller passes one handler for each task, and the main of /init chooses among
// them. Work runs in the serving process, so that an out-of-memory kill hits the container itself; a watch on resident
// memory answers with a structured error before. The server refuses a second /init, a /run before /init, and a second
// /run at the same time. Invariant: every answer has a Content-Length, and every activation ends both streams with the
// sentinel.
package runtime
