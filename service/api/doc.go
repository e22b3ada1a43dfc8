// Package api serves a service over HTTP: requests and answers in JSON, events of jobs as server-sent events, and a
// description in OpenAPI 3.1. `disdel serve` calls it.
//
// A request has a bearer token, which gives its tenant and role. A tenant sees only what is its own. The server refuses
// a body that is too long (413), too many requests (429), another Host or origin (403), a request without a token
// (401), and a role that is not enough (403). Invariant: every route is in the table of routes, with the role that it
// requires.
package api
