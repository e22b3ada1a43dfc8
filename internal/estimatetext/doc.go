// Package estimatetext is the answers of an estimate as a person reads them: tables, explanations and plots.
//
// It computes nothing: every number is the estimation's.
package estimatetext
