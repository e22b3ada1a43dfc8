package addresses

import "testing"

// Every address has the password of the environment but those with one of their own.
func TestThePasswordGoesToAddressesWithoutOne(t *testing.T) {
	t.Setenv("DISDEL_REDIS_PASSWORD", "a/b")
	for address, want := range map[string]string{
		"": "", "redis://h:1/0": "redis://:a%2Fb@h:1/0", "rediss://user@h:1/0": "rediss://user:a%2Fb@h:1/0",
		"redis://:own@h:1/0": "redis://:own@h:1/0",
	} {
		if got, err := WithPassword(address, "DISDEL_REDIS_PASSWORD"); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", address, got, err, want)
		}
	}
}

func TestOnlyLoopbackIsSafeInTheClear(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:3233": false, "http://localhost:3233": false, "http://[::1]:3233": false, "https://cluster": false,
		"cluster":        false,
		"http://cluster": true, "http://10.0.0.1:80": true, "http://localhost.example": true,
	} {
		if got := InTheClear(address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
