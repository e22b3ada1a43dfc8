// Package queue decides when a job gets room in the memory pool of a platform, for all processes that use the pool.
//
// The state of the queue is a note in the history. Every process that changes it decides for all jobs, by
// [github.com/disdel/disdel/scheduler.Admission], and names the state that it read: if another process was faster, it
// tries again. Each process finds in the note what its own jobs got. The jobs of a process leave the note when its
// session ends.
//
// [Queue.Enter] waits for the room of a job, [Queue.Change] asks for other room while the job runs, [Queue.Leave] gives
// it back. Errors are OverLimit for a job that can never have its room, and the cause of a context that ended.
package queue
