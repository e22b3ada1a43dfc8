// Package client is what commands ask of a service: of one in this process, or of a server over HTTP. A command says
// the same whichever it is.
//
// It decides nothing and keeps nothing but a connection. Errors are those of package service, also from a server; one
// that does not answer is Unavailable.
package client
