// Package tenant keeps the users of a server apart: their tokens and roles, their quotas, the disk room that they have
// claimed, and their own part of the Redis that actions share.
//
// [Registry] is the list of tenants. It stores no token, only a hash of each. Errors are Denied for an unknown token,
// Invalid for a name that no tenant can have, NotFound for an unknown tenant, and what the history answers.
package tenant
