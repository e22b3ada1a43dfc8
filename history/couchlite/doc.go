// Package couchlite is a small server with CouchDB's HTTP interface on a bbolt file: databases, documents with
// revisions and conflicts, _bulk_docs, _all_docs, _find and _changes. It stores the history of people who run no
// CouchDB. Its client is the same as CouchDB's.
//
// Several disdel processes share one file. bbolt locks a file while it is open, so the file is open only during a
// request. The server refuses what CouchDB refuses, with the same codes and texts. Invariant: a write that was answered
// with 201 is on disk.
package couchlite
