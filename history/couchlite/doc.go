// Package couchlite is a small server that speaks CouchDB's HTTP wire on a bbolt file: databases, documents with
// revisions and conflicts, _bulk_docs, _all_docs, _find and _changes. It holds the history of people who run no
// CouchDB; the client is the one that talks to CouchDB.
//
// Several disdel processes share one file, and bbolt locks a file for the process that has it open: so the file is open
// only for the length of a request. It refuses what CouchDB refuses, with CouchDB's codes and words. Invariant: a write
// that was answered with 201 is on disk.
package couchlite
