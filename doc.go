// Package disdel has the types that all packages of disdel share. To train models from a Go program, import
// [github.com/disdel/disdel/service] instead.
//
// A user submits a [Job]. disdel computes an [Estimate] and a [Plan] for it, starts each [Invocation], gets an
// [Activation] back, and keeps all of them in a [Record]. None of them changes an earlier one, so one document explains
// the whole job.
//
// The package does no I/O, starts no goroutines and imports only the standard library. A type lives here if two
// packages use it. docs/reference/glossary.md explains the words.
package disdel
