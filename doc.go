// Package disdel is the vocabulary every folder of disdel shares: what a user submits (Job), what is worked out for it
// (Estimate, Plan), what is run (Invocation), what comes back (Activation) and what is kept (Record).
//
// It holds values and their rules only: it does no I/O, starts no goroutine and imports nothing but the standard
// library. A type lives here when two folders use it. The words follow docs/reference/glossary.md.
//
// Nothing changes an earlier value on the way Job -> Estimate -> Plan -> Invocation -> Activation -> Record; the Record
// embeds them all, so that one document explains a run.
package disdel
