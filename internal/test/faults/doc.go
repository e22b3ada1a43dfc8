// Package faults runs seeded jobs through the built program and disturbs them: kill -9 of action processes and of
// disdel itself, restarts and losses of Redis, activations that are delivered twice. A job that lost or doubled
// anything ends with other bits than the same job left alone. Command bench/faults and a test share it.
package faults
