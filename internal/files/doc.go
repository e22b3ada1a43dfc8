// Package files reads and writes files within limits, completely or not at all, and with locks.
//
// It knows nothing about their content. Errors name the fault, and callers add the path. Invariant: readers never see a
// part of a file that WriteWhole or Replace wrote.
package files
