// Package apitypes has the JSON types of the HTTP API that no other package has: requests, answers and lists.
//
// service/api answers with them and internal/client sends them. service/api/openapi.json describes them.
package apitypes
