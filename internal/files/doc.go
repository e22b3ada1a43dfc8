// Package files reads and writes files as every room that has some needs it: within bounds, whole or not at all, and
// locked.
//
// It knows nothing of what is in them. Errors name the fault, not the path: whoever calls knows what the file is to
// him. Invariant: a file that WriteWhole or Replace wrote is never seen half.
package files
