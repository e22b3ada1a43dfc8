// Package lease says which process runs a job, for all processes that share a history.
//
// A process with jobs has a [Session]: a note in the history that it renews a few times before the note expires. For
// each job it holds a lease ([Session.Take]), which is valid for as long as its session is. Another process may take
// the job over once the session has expired, or at once if the owner was a process of this machine that is gone.
//
// Errors are Conflict if another process runs the job, and what the history answers.
package lease
