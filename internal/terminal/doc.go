// Package terminal is how disdel talks to whoever called it: tables that fit, documents for programs, errors with why
// and hint, exit codes. Data goes to standard output, everything else to standard error.
//
// It knows nothing of jobs. Whatever a text says, it cannot act on the terminal: every line goes through Clean.
package terminal
