package platform

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/disdel/disdel"
)

// CPUScaling is how many thousandths of a processor a container may use at most, as OpenWhisk's Kubernetes factory has
// it (kubernetes.cpu-scaling): Millicpus for each whole Memory of its limit, no less than Millicpus and no more than
// Most.
// It is a quota: a container gets no more even where processors are idle. The zero value sets none, and containers
// share the processors in proportion to their memory.
type CPUScaling struct {
	Millicpus int          // of one unit of memory; OpenWhisk's example: 300
	Memory    disdel.Bytes // the unit; its example: 256 MB
	Most      int          // its example: 4000
}

// period is what a quota is of, in microseconds: the kernel's own default.
const period = 100_000

// leastMillicpus is the smallest quota that the kernel takes: a thousand microseconds of each period.
const leastMillicpus = 10

// of is the quota of a container with so much memory, in thousandths of a processor; 0: it has none.
func (s CPUScaling) of(memory disdel.Bytes) int {
	if s == (CPUScaling{}) {
		return 0
	}
	return min(max(int(memory/disdel.MB/(s.Memory/disdel.MB))*s.Millicpus, s.Millicpus), s.Most)
}

func (s CPUScaling) check() error {
	if s == (CPUScaling{}) || s.Millicpus >= leastMillicpus && s.Memory >= disdel.MB && s.Most >= s.Millicpus {
		return nil
	}
	return fmt.Errorf("%d thousandths of a processor, of which %d are the least, for each %v and at most %d are no quota",
		s.Millicpus, leastMillicpus, s.Memory, s.Most)
}

// ParseCPUScaling reads MILLICPUS/MEMORY and, after a colon, the most: "300/256MB:4000". Without it the most is that of
// OpenWhisk's example, or MILLICPUS where that is more. It returns Invalid.
func ParseCPUScaling(text string) (s CPUScaling, err error) {
	bad := func() (CPUScaling, error) {
		return s, &disdel.Error{
			Kind: disdel.Invalid, Op: "read quota of processors", Msg: fmt.Sprintf("%q is none", text),
			Hint: "write thousandths of a processor for so much memory, and the most: 300/256MB:4000",
		}
	}
	each, most, bounded := strings.Cut(text, ":")
	millis, memory, ok := strings.Cut(each, "/")
	if !ok {
		return bad()
	}
	if s.Millicpus, err = strconv.Atoi(millis); err != nil {
		return bad()
	}
	if s.Memory, err = disdel.ParseBytes(memory); err != nil {
		return bad()
	}
	const example = 4000
	if s.Most = max(example, s.Millicpus); bounded {
		if s.Most, err = strconv.Atoi(most); err != nil {
			return bad()
		}
	}
	if s.check() != nil {
		return bad()
	}
	return s, nil
}

// processing is a container's part of the processors.
type processing struct {
	share int // as Docker's --cpu-shares
	quota int // thousandths of a processor; 0: none
}

func (c *Config) processingOf(memory disdel.Bytes) processing {
	return processing{share: sharesOfPool(memory, c.PoolMemory), quota: c.CPU.of(memory)}
}

// quotas are the files and texts that set a quota of so many thousandths of a processor.
func (g groups) quotas(millis int) [][2]string {
	most := strconv.Itoa(millis * period / 1000)
	if g.version == 2 {
		return [][2]string{{"cpu.max", most + " " + strconv.Itoa(period)}}
	}
	return [][2]string{{"cpu.cfs_period_us", strconv.Itoa(period)}, {"cpu.cfs_quota_us", most}}
}

// keepsQuotas tells whether the kernel keeps quotas of processors here, by setting one.
func keepsQuotas(f fencer) bool {
	g, ok := f.(groups)
	if !ok {
		return false
	}
	probe, ok := g.fence("probe", disdel.GB, processing{share: sharesOfPool(1, 1), quota: leastMillicpus}).(group)
	if !ok {
		return false
	}
	defer probe.remove()
	for _, q := range g.quotas(leastMillicpus) {
		if !probe.write(q[0], q[1]) {
			return false
		}
	}
	return true
}
