// Package jobfile reads job files of version disdel/v1: it turns YAML into a disdel.Job with every default filled in.
//
// It checks everything that needs neither network nor data set, and lists all faults at once, each with its dotted
// path, line, column and hint (Parse, Render). One table has everything about a field (fields.yaml); the text of
// `disdel explain` (Explain) and the JSON Schema (Schema) also come from it.
//
// It refuses files above 1 MiB, more than one document, aliases and merge keys, nesting deeper than 32, a key given
// twice, unknown fields and values of the wrong type. Nothing is guessed or converted: "64" in quotes is no number,
// and neither is 012.
//
// cmd/disdel calls it, and the controller's request validator, which adds its own faults at the places of
// File.Locate. It does no I/O.
//
// Invariant: Parse always returns a job that obeys every rule of the table, or a *disdel.Faults with at least one
// fault. It never panics, and messages contain text of the file only with its control characters escaped.
package jobfile
