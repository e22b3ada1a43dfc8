// Package promtext writes metrics in the text format of Prometheus, version 0.0.4.
//
// It knows no metric's meaning, and keeps no value except those of a Histogram. Invariant: its output can be parsed,
// whatever a label's value contains.
package promtext
