// Package promtext writes figures in the text format of Prometheus, version 0.0.4.
//
// It knows no figure's meaning and keeps none but those of a Histogram. Invariant: what it writes can be read, whatever
// a label's value holds.
package promtext
