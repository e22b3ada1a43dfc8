// Package tenant keeps the users of a server apart: their tokens and roles, their quotas, the room that they have
// claimed, what they share with each other, and their own part of the Redis that actions share.
//
// [Registry] is the list of tenants, their tokens and their shares. It stores no token, only a hash of each. [Audit] is
// the log of who did what. Errors are Denied for an unknown token,
// Invalid for a name that no tenant can have, NotFound for an unknown tenant, and what the history answers.
package tenant
