// Package api is a service over HTTP: JSON in and out, a job's events as server-sent events, and a description of all
// of it in OpenAPI 3.1, which is served too.
//
// Whoever comes in has a bearer token, which says whose it is and what it allows; what belongs to others is not there
// for him. It refuses what is too long (413), too often (429), for a Host that is not its own or from another origin
// (403), without a token (401) or with one that does not allow it (403). `disdel serve` calls it. Invariant: no route
// is open that the table of routes does not have with the role that it takes.
package api
