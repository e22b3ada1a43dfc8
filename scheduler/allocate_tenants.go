package scheduler

import (
	"cmp"

	"github.com/disdel/disdel"
)

// account is what a tenant has and wants.
type account struct {
	tenant  string
	jobs    int
	room    Capacity
	cost    float64
	waiting []*Demand // in their order
	weight  float64
	behind  disdel.Millis // how far the tenant's share puts its jobs back
}

// account is that of a job's tenant. The number saves looking for the name among many.
func (d *gangDecision) account(j *Demand) *account {
	n := j.number
	if n > 0 && n < len(d.numbered) && d.numbered[n] != nil && d.numbered[n].tenant == j.Tenant {
		return d.numbered[n]
	}
	a := d.accounts[j.Tenant]
	if a == nil {
		a = &account{tenant: j.Tenant}
		d.accounts[j.Tenant] = a
	}
	if n > 0 {
		d.numbered = append(d.numbered, make([]*account, max(0, n+1-len(d.numbered)))...)
		d.numbered[n] = a
	}
	return a
}

func (a *account) add(d *Demand, room Capacity) {
	a.jobs++
	a.room = a.room.Plus(room)
	a.cost += d.Cost
}

// place puts a tenant where its share is.
func (d *gangDecision) place(a *account) {
	a.behind = disdel.Millis(float64(ShareWorth) * d.whole.share(a.room) / cmp.Or(a.weight, 1))
}

// over tells whether one more job is more than its tenant may have.
func (a *account) over(d *Demand, room Capacity) bool {
	q := d.Quota
	return q.Jobs > 0 && a.jobs >= q.Jobs || q.Memory > 0 && a.room.Memory+room.Memory > q.Memory ||
		q.Cost > 0 && q.Spent+a.cost+d.Cost > q.Cost
}

// queue is the tenants that want something, the one whose first job goes next on top.
type queue struct {
	accounts []*account
	compare  func(a, b *Demand) int
}

func (q *queue) Len() int      { return len(q.accounts) }
func (q *queue) Swap(i, j int) { q.accounts[i], q.accounts[j] = q.accounts[j], q.accounts[i] }
func (q *queue) Push(any)      {} // nobody joins

func (q *queue) Less(i, j int) bool {
	a, b := q.accounts[i], q.accounts[j]
	x, y := a.waiting[0], b.waiting[0]
	return cmp.Or(cmp.Compare(rankAcross(x)+a.behind, rankAcross(y)+b.behind), q.compare(x, y)) < 0
}

// Pop takes out the last one.
func (q *queue) Pop() any {
	n := len(q.accounts) - 1
	last := q.accounts[n]
	q.accounts = q.accounts[:n]
	return last
}
