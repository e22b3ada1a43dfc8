// Package image makes the container image of the action runtime: one static program, the certificates of authorities
// that it trusts, and a user who is not root. It needs no container engine.
//
// An image is a function of its Options and of the files that they name: the same in, the same bits out, on any
// machine. It goes to a folder (OCI layout), to a file for `docker load`, or to a registry.
package image
