// Package exchange is the arithmetic of workers that exchange their updates after every step, inside a round: bulk
// synchronous (BSP), with MLLess' significance filter (ISP), and apart by a slack (SSP) in a fixed order.
//
// A worker's weights are x = S + local. S, the shared part, is the first weights and everything that all members have
// sent, added in the order of steps and members: it is the same bits on every member that has folded as many steps.
// local is what of the worker's own updates is not in S: what it has not sent yet, because it was not significant, and
// what it has sent and not folded yet. Who drives replicas moves their deltas; the package does no I/O, has no clock
// and refuses what is out of order. Invariants: S is bit-equal wherever as many steps were folded; no update is lost,
// since what is not sent is kept; a threshold of 0 sends everything, which is BSP.
//
// Sources: Gimeno Sarroca and Sanchez-Artigas, MLLess, FGCS 2023, section 4.1 (the filter; theirs reaches other orders
// of addition on every worker, and averages replicas in the end); Ho et al., NIPS 2013 (slack).
package exchange
