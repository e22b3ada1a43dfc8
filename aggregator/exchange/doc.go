// Package exchange is the arithmetic of workers that exchange their updates after every step of a round. It supports
// bulk synchronous exchange (BSP), MLLess' significance filter (ISP), and stale synchronous exchange with a slack
// (SSP), in a fixed order or eagerly.
//
// A worker's weights are x = S + local. S, the shared part, is the initial weights and all deltas of all members, added
// in the order of steps and members. All members that have folded the same number of steps have the same bits of S.
// local is the part of the worker's own updates that is not in S: what it has not sent because it was not significant,
// and what it has sent but not folded. An eager member also computes with deltas of others that are not in S yet. It
// notes them in the head of its own delta (Vector), so that a run can be replayed. Deltas are sent as float32, bfloat16
// or int8; the rounding error is sent later. The caller moves the deltas: this package does no I/O and has no clock.
// Invariants: S has the same bits wherever the same number of steps were folded; no update is lost; a threshold of 0
// sends everything, which is BSP.
//
// Sources: Gimeno Sarroca and Sanchez-Artigas, MLLess, FGCS 2023, section 4.1 (the filter; their workers add in
// different orders, and they average the replicas at the end); Ho et al., NIPS 2013 (slack).
package exchange
