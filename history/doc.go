// Package history keeps the records of jobs in CouchDB, through kivik's couchdb driver. People without a CouchDB have
// couchlite, which speaks the same wire; nothing here knows which of the two it talks to.
//
// Lists and what a plan learns from are asked of a view where the server has any (view.go), else of selectors: the
// answers are the same, and the time is not.
//
// A document's id is the job's, and ids sort by time. Saving a record again changes nothing, saving a newer one
// replaces it. Documents of an unknown newer version are refused with one line and never rewritten. The controller
// saves and looks for similar jobs; the command line lists and shows.
package history
