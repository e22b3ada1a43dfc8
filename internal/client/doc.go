// Package client is what commands need of a service, in this process ([Local]) or behind a server ([Remote]).
//
// It decides nothing, and keeps only a connection. Errors are those of package service, also from a server; a server
// that does not answer is Unavailable.
package client
