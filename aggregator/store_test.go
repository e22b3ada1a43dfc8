package aggregator

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/disdel/disdel"
	own "github.com/disdel/disdel/aggregator/embedded"
	"github.com/disdel/disdel/internal/test/faults"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// freePort is a loopback port that nobody listened on a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := faults.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// startRedis starts a redis-server with options and waits until s can be opened.
func startRedis(t *testing.T, s disdel.Store, options ...string) {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed; scripts/test-deps.sh installs it")
	}
	cmd := exec.Command(program,
		append([]string{"--bind", "127.0.0.1", "--save", "", "--requirepass", "secret", "--dir", t.TempDir()}, options...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for range 3000 { // another process, on a machine that may be busy
		var opened *Store
		if opened, err = Open(context.Background(), s); err == nil {
			opened.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("redis-server did not come up: %v", err)
}

func plainRedis(t *testing.T, options ...string) string {
	t.Helper()
	port := freePort(t)
	address := "redis://:secret@127.0.0.1:" + port + "/0"
	startRedis(t, disdel.Store{URLs: []string{address}}, append([]string{"--port", port}, options...)...)
	return address
}

// serverUnderTest is a store to test, and its administrator's view of each of its servers.
type serverUnderTest struct {
	store  disdel.Store
	admins []string
}

// redisServer starts a redis-server of its own, or skips; DISDEL_TEST_REDIS_URL names one that runs.
func redisServer(t *testing.T) serverUnderTest {
	address := os.Getenv("DISDEL_TEST_REDIS_URL")
	if address == "" {
		address = plainRedis(t)
	}
	return serverUnderTest{disdel.Store{URLs: []string{address}}, []string{address}}
}

func twoServers(t *testing.T) serverUnderTest {
	a, b := plainRedis(t), plainRedis(t)
	return serverUnderTest{disdel.Store{URLs: []string{a, b}}, []string{a, b}}
}

func embedded(t *testing.T) serverUnderTest {
	t.Helper()
	e, err := own.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return serverUnderTest{disdel.Store{URLs: []string{e.URL()}}, []string{e.URL()}}
}

// place is a store under test with what an administrator sees of it.
type place struct {
	*Store
	admins []*redis.Client
}

// Reduce reduces members, reads the mean before it is committed, and discards it.
func (p *place) Reduce(ctx context.Context, members []disdel.UpdateID, like disdel.Weights) (disdel.Update, error) {
	var c Claim
	if len(members) > 0 {
		c.ID = disdel.UpdateID{Job: members[0].Job, Round: members[0].Round, Level: 99}
	}
	m, err := p.Store.Reduce(ctx, c, Reduction{Members: members, Like: like})
	if err != nil {
		return disdel.Update{}, err
	}
	w, err := p.load(ctx, m.staged.head, m.body)
	err = errors.Join(err, p.remove(ctx, c.ID.Job, []string{m.staged.entry()}))
	return disdel.Update{Samples: m.Samples, Weights: w}, err
}

// CommitReference publishes a reference under the claim of an aggregation, as a mean is.
func (p *place) CommitReference(ctx context.Context, c Claim, round int, w disdel.Weights) error {
	h, err := p.headOf(kindReference, referenceID(c.ID.Job, round), w)
	if err != nil {
		return err
	}
	h.fence = c.Fence
	return p.publish(ctx, h, fromWeights(h, w), c.ID, c.Fence)
}

// all is every key of the store's prefix, whatever server it lies on.
func (p *place) all() map[string]*redis.Client {
	out := map[string]*redis.Client{}
	for _, a := range p.admins {
		for _, key := range a.Keys(ctx, p.keys.prefix+":*").Val() {
			out[key] = a
		}
	}
	return out
}

var promises = map[string]func(*testing.T, *place){
	"an update comes back as it went": updatesComeBack, "what is missing is NotFound": missingIsNotFound,
	"large updates travel in parts": partsTravel, "damage is refused": damageIsRefused,
	"damaged parts are refused":            damagedPartsAreRefused,
	"shards have the bits of a whole mean": shardsHaveTheBitsOfAWholeMean,
	"a shard commits once":                 shardsCommitOnce,
	"reduce is the weighted mean":          reduceIsTheMean, "reduce adds in the members order": reduceKeepsOrder,
	"reduce takes whatever is said of an update": reduceTakesWhatIsSaid,
	"narrow formats travel as differences":       narrowFormatsTravel,
	"references are per round":                   referencesPerRound, "a reference is published once": referencesOnce,
	"heartbeats bring back cancel": heartbeats, "heartbeats keep apart": heartbeatsKeepApart,
	"what is kept is taken up once": whatIsKeptIsTakenUpOnce,
	"sweep leaves nothing":          sweepLeavesNothing, "every key expires": keysExpire,
	"drop leaves the newer rounds": dropLeavesNewer, "a round can be run anew": roundsRunAnew,
	"a claim keeps others out": claimsKeepOut, "a higher attempt takes over": attemptsTakeOver,
	"leases end by the clock of Redis": leasesEnd,
	"an update is committed once":      committedOnce, "without claims the last update stands": unclaimedReplaced,
	"a lost reply does no harm": lostReplies, "a foreign fence is refused": foreignFences,
	"a round that has ended stays as it is": roundsEnd,
	"slack lets work that lags behind in":   slackLetsIn, "slack lets no reference be skipped": slackSkipsNothing,
	"a claim that is lost ends the work": holdsEnd, "states are one per worker and round": statesAreReplaced,
	"states need the claim":                 statesNeedClaims,
	"states go tensor by tensor":            statesGoTensorByTensor,
	"updates in blocks are those of a copy": updatesInBlocksAreThoseOfACopy,
	"deltas keep their round":               deltasKeepTheirRound,
	"deltas go around":                      deltasGoAround, "deltas wake who waits": deltasWakeWhoWaits,
	"deltas are sent once": deltasAreSentOnce, "deltas are checked": deltasAreChecked,
	"deltas are dropped": deltasAreDropped, "deltas lie on all servers": deltasLieOnAllServers,
	"deltas are looked for": deltasAreLookedFor, "deltas come along": deltasComeAlong,
	"deltas of a slow reader":             deltasOfASlowReaderAreBounded,
	"deltas are not left to the next try": deltasAreNotLeftToTheNextTry,
	"members leave":                       membersLeave, "members are ended": membersAreEnded,
	"stages pass values": stagesPassValues, "stages begin again": stagesBeginAgain, "stages wait": stagesWait,
	"stages are joined":      stagesAreJoined,
	"batches are drawn once": batchesAreDrawnOnce, "members are let go": membersAreLetGo,
}

// The same promises hold on the embedded store, on Redis, on two of them, over TLS, for a user with rights to
// little, by Sentinel and on a cluster.
func TestStoreConformance(t *testing.T) {
	for name, start := range map[string]func(*testing.T) serverUnderTest{
		"embedded": embedded, "redis-server": redisServer, "two redis-servers": twoServers, "TLS": tlsServer,
		"ACL user": tenant, "Sentinel": sentinels, "cluster": redisCluster,
	} {
		t.Run(name, func(t *testing.T) {
			at := start(t)
			for promise, check := range promises {
				t.Run(promise, func(t *testing.T) { check(t, enter(t, at, "t"+strings.ReplaceAll(promise, " ", "-"))) })
			}
			t.Run("a wrong password is Denied", func(t *testing.T) {
				u, _ := url.Parse(at.store.URLs[0])
				u.User = url.UserPassword(u.User.Username(), "wrong")
				wrong := at.store
				wrong.URLs = []string{u.String()}
				if _, err := Open(context.Background(), wrong); !errors.Is(err, disdel.Denied) {
					t.Errorf("got %v, want Denied", err)
				}
			})
		})
	}
}

func enter(t *testing.T, at serverUnderTest, prefix string) *place {
	t.Helper()
	config := at.store
	config.Prefix = prefix
	s, err := Open(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	p := &place{Store: s}
	for _, address := range at.admins {
		opt, err := redis.ParseURL(address)
		if err != nil {
			t.Fatal(err)
		}
		opt.DisableIdentity = true
		admin := redis.NewClient(opt)
		t.Cleanup(func() { admin.Close() })
		p.admins = append(p.admins, admin)
	}
	return p
}

func someWeights(seed uint64) disdel.Weights {
	rng := rand.New(rand.NewPCG(seed, 2))
	w := disdel.Weights{
		{Name: "a.weight", Shape: []int{3, 4}, Data: make([]float32, 12)},
		{Name: "a.bias", Shape: []int{3}, Data: make([]float32, 3)},
	}
	for _, t := range w {
		for i := range t.Data {
			t.Data[i] = float32(rng.NormFloat64())
		}
	}
	return w
}

func update(member int, samples float64) disdel.Update {
	return disdel.Update{
		ID: disdel.UpdateID{Job: "job-1", Round: 2, Member: member}, Attempt: 1, Samples: samples,
		Weights: someWeights(uint64(member)),
	}
}

var ctx = context.Background()

func push(t *testing.T, s *place, u disdel.Update) {
	t.Helper()
	if err := s.PushUpdate(ctx, u); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, kind disdel.Kind, err error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
}

func updatesComeBack(t *testing.T, s *place) {
	u := update(1, 30)
	push(t, s, u)
	push(t, s, u) // a second delivery changes nothing
	got, err := s.FetchUpdate(ctx, u.ID, someWeights(9))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(u, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func missingIsNotFound(t *testing.T, s *place) {
	_, err := s.FetchUpdate(ctx, update(7, 1).ID, nil)
	want(t, disdel.NotFound, err)
	_, err = s.Reference(ctx, "job-1", 3, nil)
	want(t, disdel.NotFound, err)
	_, _, err = s.State(ctx, update(7, 1).ID, nil)
	want(t, disdel.NotFound, err)
}

func partsTravel(t *testing.T, s *place) {
	s.column = 4
	updatesComeBack(t, s)
	servers := map[*redis.Client]bool{}
	for key, at := range s.all() {
		if strings.Contains(key, "update:2:0:1:") {
			servers[at] = true
		}
	}
	if len(servers) != len(s.servers) {
		t.Errorf("parts lie on %d servers of %d", len(servers), len(s.servers))
	}
}

func damageIsRefused(t *testing.T, s *place) {
	u := update(1, 30)
	push(t, s, u)
	key := s.keys.value(kindUpdate, u.ID)
	data, err := s.client.Get(ctx, key).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-30] ^= 1
	s.client.Set(ctx, key, data, time.Minute)
	_, err = s.FetchUpdate(ctx, u.ID, someWeights(1))
	want(t, disdel.Corrupt, err)
	_, err2 := s.Reduce(ctx, []disdel.UpdateID{u.ID}, someWeights(1))
	want(t, disdel.Corrupt, err2)
	if err == nil || err2 == nil || !strings.Contains(err.Error(), "round 2") ||
		!strings.Contains(err2.Error(), "round 2") {
		t.Errorf("%v and %v do not name the update", err, err2)
	}
	if c, _ := s.Counts(ctx, "job-1"); c.Damaged != 2 {
		t.Errorf("%d counted as damaged, want 2", c.Damaged)
	}
	bad := update(2, 1)
	bad.Weights[0].Data[5] = float32(math.Inf(1))
	want(t, disdel.Diverged, s.PushUpdate(ctx, bad))
	want(t, disdel.Invalid, s.PushUpdate(ctx, update(2, 0)))
	bad = update(2, 1)
	bad.Weights[0].Data = bad.Weights[0].Data[1:]
	want(t, disdel.Invalid, s.PushUpdate(ctx, bad))
}

// Every way in which one part of one member can be wrong: nothing comes of the whole mean.
func damagedPartsAreRefused(t *testing.T, s *place) {
	s.column = 4
	var ids []disdel.UpdateID
	for m := range 3 {
		push(t, s, update(m, 1))
		ids = append(ids, update(m, 1).ID)
	}
	damages := map[string]func(data []byte) []byte{
		"a bit":      func(d []byte) []byte { d[3] ^= 16; return d },
		"its end":    func(d []byte) []byte { return d[:len(d)-1] },
		"more of it": func(d []byte) []byte { return append(d, 0) },
		"too much":   func(d []byte) []byte { return append(d, make([]byte, 100)...) },
		"nothing":    func([]byte) []byte { return nil },
	}
	for key, admin := range s.all() {
		if !strings.HasPrefix(key, s.keys.value(kindUpdate, ids[1])+":") {
			continue
		}
		good, err := admin.Get(ctx, key).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		for name, damage := range damages {
			admin.Set(ctx, key, damage(append([]byte(nil), good...)), time.Minute)
			if name == "nothing" {
				admin.Del(ctx, key)
			}
			got, err := s.Reduce(ctx, ids, someWeights(1))
			if !errors.Is(err, disdel.Corrupt) || !strings.Contains(err.Error(), ids[1].String()) || got.Weights != nil {
				t.Errorf("%s of %s: %v, %v", name, key, got.Weights, err)
			}
			if _, err := s.FetchUpdate(ctx, ids[1], someWeights(1)); !errors.Is(err, disdel.Corrupt) {
				t.Errorf("%s of %s: %v", name, key, err)
			}
		}
		admin.Set(ctx, key, good, time.Minute)
	}
	if _, err := s.Reduce(ctx, ids, someWeights(1)); err != nil {
		t.Errorf("mended: %v", err)
	}
}

func TestAStoreThatIsNotThereIsUnavailable(t *testing.T) {
	_, err := Open(ctx, disdel.Store{URLs: []string{"redis://127.0.0.1:1/0?max_retries=1"}})
	want(t, disdel.Unavailable, err)
	_, err = Open(ctx, disdel.Store{URLs: []string{"http://x"}})
	want(t, disdel.Invalid, err)
	_, err = Open(ctx, disdel.Store{URLs: []string{"redis://127.0.0.1:1/0"}, Prefix: "a*"})
	want(t, disdel.Invalid, err)
}
