package aggregator

import "strings"

// commands is all that a Store asks of Redis. What reaches beyond a tenant's keys is not among it: KEYS, SCAN,
// RANDOMKEY, DBSIZE, FLUSHALL, CONFIG. INFO is not either: without it the check for room before a job is left out.
var commands = []string{
	"hello", "auth", "ping", "select", "get", "set", "getrange", "exists", "expire", "rename", "unlink", "time",
	"hset", "hget", "hmget", "hgetall", "hincrby", "sadd", "srem", "smembers", "eval", "evalsha",
	"xadd", "xread",
}

// ACL is the rule of Redis' ACL SETUSER or of an ACL file's line, after the user's name and password, that lets a user
// work with the keys of a prefix and nothing else: "ACL SETUSER name on >password RULE". Each server that values are
// spread over needs it.
func ACL(prefix string) string {
	return "resetkeys resetchannels ~" + prefix + ":* -@all +" + strings.Join(commands, " +")
}
