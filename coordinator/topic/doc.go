// Package topic is what the cluster ledger says of topics and settings, and of
// which producer ids are taken: its entries, the fold, and the pure decisions
// that lead to an entry or to a refusal (names, partition counts, configs).
//
// The fold (State) belongs to one goroutine. What everybody else reads is a
// View: an immutable snapshot. Nothing here starts a goroutine, reads a clock
// or draws a random number: topic ids and times come from the caller.
// docs/formats/topic.md has the bytes.
package topic

// Ledger is the name of the cluster ledger. Its other kinds of state have
// packages, kinds of entries and rows of their own.
const Ledger = "cluster"
