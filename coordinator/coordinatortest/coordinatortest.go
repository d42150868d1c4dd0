// Package coordinatortest is the suite that every coordinator passes, by
// itself and behind the fault wrapper.
package coordinatortest

import (
	"testing"

	"github.com/siltstone-io/siltstone/coordinator"
)

// Store opens one store, empty at first. It is opened again, after it was
// closed, to see what it has kept.
type Store func(t *testing.T) coordinator.Coordinator

// Run runs the suite. fresh makes a store that nothing else uses.
func Run(t *testing.T, fresh func(t *testing.T) Store) {
	run(t, fresh, counts{trimmed: 10_000, writers: 8, wins: 25})
}

// RunFew is Run with fewer calls where there are thousands, for a store across
// a network.
func RunFew(t *testing.T, fresh func(t *testing.T) Store) {
	run(t, fresh, counts{trimmed: 300, writers: 4, wins: 8})
}

// counts are how many slots a trim deletes, and how many writers win how many
// slots of one ledger each.
type counts struct{ trimmed, writers, wins int }

func run(t *testing.T, fresh func(t *testing.T) Store, n counts) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open Store)
	}{
		{"append and read", appendAndRead},
		{"a taken slot", takenSlot},
		{"reads are bounded", boundedReads},
		{"gaps", gaps},
		{"what cannot be a slot", badAppends},
		{"ledgers are apart", ledgersApart},
		{"data is copied", dataCopied},
		{"trim", trim},
		{"a trimmed slot", trimmedSlot},
		{"trim of many", n.trimMany},
		{"many writers, one winner", n.manyWriters},
		{"registers", registers},
		{"what cannot be a register", badPuts},
		{"tombstones", tombstones},
		{"versions are unique", versionsUnique},
		{"list", list},
		{"register data is copied", registerDataCopied},
		{"many counters, no lost update", manyCounters},
		{"a context that has ended", endedContext},
		{"closed", closed},
		{"kept when opened again", kept},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, fresh(t)) })
	}
}

// opened is the store, closed when the test ends.
func opened(t *testing.T, open Store) coordinator.Coordinator {
	t.Helper()
	c := open(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}
