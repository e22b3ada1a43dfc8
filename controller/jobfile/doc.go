// Package jobfile reads job files of version disdel/v1: YAML in, a disdel.Job with every default filled in out.
//
// It checks everything that needs neither network nor data set, and lists all faults at once, each with its dotted
// path, line, column and hint (Parse, Render). What it knows of a field stands in one table, from which also come the
// text of `disdel explain` (Explain) and the JSON Schema (Schema).
//
// It refuses files above 1 MiB, more than one document, aliases and merge keys, nesting deeper than 32, a key given
// twice, unknown fields and values of the wrong type; nothing is guessed or converted: "64" in quotes is no number, 012
// neither.
//
// Called by cmd/disdel and by the controller's request validator, which adds its own faults at the places that
// File.Locate tells. It does no I/O.
//
// Invariant: whatever the input, Parse returns a job that obeys every rule of the table, or a *disdel.Faults with at
// least one fault. It never panics, and text of the file reaches a message only with its control characters escaped.
package jobfile
