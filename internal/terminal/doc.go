// Package terminal prints for people and programs: tables that fit the terminal, documents, errors with cause and hint,
// and exit codes. Data goes to standard output, everything else to standard error.
//
// It knows nothing about jobs. No text can control the terminal, because every line goes through Clean.
package terminal
