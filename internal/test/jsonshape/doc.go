// Package jsonshape describes JSON documents by the names and types of their fields, for tests that guard what programs
// read. A [Shape] comes from the Go type that is encoded, so that it also has the fields that a document may leave out.
package jsonshape
