// Package history keeps the records of jobs in CouchDB, through kivik's couchdb driver. People without CouchDB use
// couchlite, which has the same HTTP interface; this package does not know which of the two it talks to.
//
// Lists and similar jobs come from a view if the server has views, else from selectors. The results are the same;
// selectors are slower.
//
// A document's id is the job's id, and ids sort by time. Saving an unchanged record changes nothing; a newer one
// replaces it. Documents of newer versions of disdel are refused and never rewritten. The controller saves records and
// looks for similar jobs; the command line lists and shows them.
package history
