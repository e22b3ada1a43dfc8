// Package web serves the pages of a server for a browser: the list of jobs, a job, comparisons of jobs, models, data
// sets and the pool.
//
// The server renders the pages, and they work without a script. The script only loads a page again after an event, and
// replaces what has changed, so that scrolling, filters and marks stay. The content security policy allows only the
// page's own style and script.
//
// A user signs in with a token of the API. The cookie of a session is sent only to these pages, and no script can read
// it. Every request checks the token of its session, so that a revoked token opens nothing. A tenant sees what its own
// Service shows.
package web
