// Package comparison holds jobs against each other: what came of them, and what was different about them.
//
// It reads records and decides nothing. The command line prints it, the page shows it.
package comparison
