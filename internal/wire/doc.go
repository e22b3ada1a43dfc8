// Package wire is what a server and its clients say to each other: the JSON of requests and answers that is nobody's
// own document yet.
//
// It does nothing. service/api answers with it, internal/client asks with it; service/api/openapi.json describes it.
package wire
